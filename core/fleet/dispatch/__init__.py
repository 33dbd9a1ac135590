"""The rules of the board: the assignment of tasks to workers, and the effects of one task on others."""
