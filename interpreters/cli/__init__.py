"""The command line: translates what was typed, asks the worlds, and prints; it decides nothing."""
