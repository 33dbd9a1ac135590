"""The lifecycles of the documents: each a table of states, events, guards and actions, with its properties."""
