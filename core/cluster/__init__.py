"""Leases of sessions among hosts: the times of their fences, and a small cluster that is checked."""
