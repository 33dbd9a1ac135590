"""Git: worktrees of agents, the target branch, merges, and work that is not merged."""
