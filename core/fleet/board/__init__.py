"""The machines on the board: tasks, worker slots, budgets, restart permits, preemption requests, services, intake."""
