"""A fleet explained to people: what each task waits for, how agents stand, what was spent."""
