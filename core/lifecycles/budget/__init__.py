"""Budgets with a hard ceiling: accounts, leases, requests for more, and the money of an agent."""
