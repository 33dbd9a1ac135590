"""Money that cannot be overspent: accounts, the leases that hold them, requests for more, and an agent's own."""
