"""The search over crashes of a runner: decide, persist, perform, record, and a death between any two."""
