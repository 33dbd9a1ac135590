"""A fleet explained to operators: what each task waits for, the state of its agents, and its costs."""
