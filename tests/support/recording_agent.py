"""An agent that writes down what is called of it, for the tests of the handle."""

from collections.abc import Callable
from typing import Any, Final

from lifefold.interpreters.facades.cooperative import Agent, AgentState
from virtual_clock import VirtualClock

HOOKS: Final = (
    "on_startup on_shutdown on_scheduled on_preempt_request on_preempt_overdue on_suspend on_resume on_recovery_start"
    " on_recovery_complete on_task_failed"
).split()


class Recording(Agent):
    """An agent that writes down each hook with the state it was called in; ``calls`` may hang code into hooks."""

    def __init__(self, *, clock: Callable[[], int] | None = None, **options: Any) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.calls: dict[str, Callable[[], object]] = {}
        super().__init__("a", "Recording", clock=clock or VirtualClock(), **options)

    def __getattribute__(self, name: str) -> Any:
        if name not in HOOKS:
            return super().__getattribute__(name)

        def hook(*arguments: object) -> None:
            self.heard.append((name, *arguments, self.state_name))
            self.calls.get(name, lambda: None)()

        return hook

    def on_state_change(self, old_state: int, new_state: int) -> None:
        self.heard.append((AgentState.name(old_state), AgentState.name(new_state)))
        self.calls.get("on_state_change", lambda: None)()


def running(**options: Any) -> Recording:
    """Return an agent that is RUNNING its first task, with nothing written down yet."""
    agent = Recording(**options)
    agent.start()
    agent.schedule("T1")
    agent.run()
    agent.heard.clear()
    return agent
