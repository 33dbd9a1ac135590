"""One module for each kind of command; a function takes the parsed arguments and returns the exit code."""
