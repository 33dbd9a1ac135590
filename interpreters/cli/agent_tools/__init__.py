"""What an agent can do at its own task through ``lifefold mcp``: ask, split, report, read."""
