-- The roles of a log, for an administrator of the database of the logs: the brain writes, hosts read.
-- Set their passwords with \password, and put them into the secrets.
CREATE ROLE fleets LOGIN;
CREATE ROLE fleet_hosts LOGIN;
GRANT CREATE ON DATABASE agents TO fleets;
-- Each log that the brain makes from now on can be read by hosts.
ALTER DEFAULT PRIVILEGES FOR ROLE fleets GRANT USAGE ON SCHEMAS TO fleet_hosts;
ALTER DEFAULT PRIVILEGES FOR ROLE fleets GRANT SELECT ON TABLES TO fleet_hosts;
-- Each role that may use a log may write its table of hosts, in which each host says how it is. Only the brain writes
-- writer_word, in which it says which plan is in force; hosts read and believe that.
