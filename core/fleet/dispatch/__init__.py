"""The rules of the board: which task goes to which worker, and what one task means for others."""
