"""The operator's desk: what a fleet shows of its agents' work, as values for the command line and for the web.

Each module reads one kind of evidence. ``history`` has sessions and claims from the log. ``session_output`` has the
output of a session, and ``output_lines`` its decoding. ``changes`` has commits and worktrees, and ``verifications`` has
verifications. ``pages`` puts all about one task or one agent together. ``registry`` lists the fleets of this machine.
All of it only reads, except ``registry.noted``.
"""
