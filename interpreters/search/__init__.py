"""The search of a check: states, component tables, liveness, reductions and their cross-check."""
