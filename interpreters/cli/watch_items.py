"""The list of the command ``watch``: what waits for an operator, what has failed, the agents, then all other tasks.

An item knows the keys that apply to it, each with the command that it stands for.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import awaited
from lifefold.interpreters.cli.attention import agents_first, tasks_first
from lifefold.interpreters.cli.colours import style_of
from lifefold.interpreters.cli.wording import moment
from lifefold.interpreters.explain import status
from lifefold.interpreters.explain.chronicle_words import Mood
from lifefold.interpreters.explain.pending import Awaited, Waiting
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.explain.why.phrases import brief, count, enumerated
from lifefold.interpreters.explain.words import unwrapped

WAITS: Final = style_of(Mood.WAITS)
FAILED: Final = style_of(Mood.FAILED)


class Key(msgspec.Struct, frozen=True):
    """A key of an item: what it does, the command, and what is asked before it.

    ``asks`` is empty for a command that is given at once, or a question. ``takes_text``: the answer is a text, which
    ends the command; else the command is given if the answer is yes. ``shows``: the command takes the screen.
    """

    key: str
    label: str
    words: tuple[str, ...]
    asks: str = ""
    takes_text: bool = False
    shows: bool = False


class Item(msgspec.Struct, frozen=True):
    """A line of the list. ``id`` stays the same while the line changes; ``agent`` is set for a row of an agent.

    A decision about a task and a failure of it are lines of their own. So the cursor does not follow a task that an
    operator has decided about, and stands on the next line that needs one.
    """

    id: str
    mark: str
    name: str
    text: str
    style: str = ""
    keys: tuple[Key, ...] = ()
    agent: AgentStatus | None = None


def items(there: Mapping[str, Aggregate], tasks: Sequence[TaskStatus]) -> tuple[Item, ...]:
    """Return the list of a fleet, in the order of attention."""
    waiting = awaited.waiting(there)
    needy = [decision(each) for each in waiting]
    named = {name for each in waiting if each.about is Awaited.TASK for name in each.names}
    first = [each for each in tasks_first(tasks) if each.id not in named]
    broken = [each for each in first if _is_broken(each)]
    agents = [_agent(each) for each in agents_first(status.at_attempts(status.agents(there), tasks))]
    rest = [_task(each) for each in first if not _is_broken(each)]
    return tuple(each for part in (needy, [*map(_task, broken)], agents, rest) for each in part)


def _is_broken(task: TaskStatus) -> bool:
    return task.state == State.BLOCKED or (task.state == State.FAILED and not task.is_retried)


def decision(of: Waiting) -> Item:
    """Return a decision that the fleet waits for."""
    return _WAITING[of.about](of, of.names[0] if of.names else "")


def _until(of: Waiting) -> str:
    return f" (until {moment(of.until_ms)})" if of.until_ms else ""


def _question(of: Waiting, name: str) -> Item:
    answer = Key("w", "answer", ("answer", name), f"answer {name}", takes_text=True)
    approve = Key("a", "approve", ("approve", name), f"approve {name}")
    first, agent = approve if of.command == "approve" else answer, name.partition("/")[0]
    keys = (first, _reject(name), *_looks(agent, is_task=False))
    return Item(f"question {name}", "?", name, f"{of.reason}{_until(of)}", WAITS, keys)


def _approval(of: Waiting, name: str) -> Item:
    approve = Key("a", "approve", ("approve", name), f"approve {name}{', so that it is merged' if of.commit else ''}")
    keys = (approve, _reject(name), *_looks(name, has_diff=bool(of.commit)))
    return Item(f"approval {name}", "!", name, f"is done and waits for your approval{_until(of)}", WAITS, keys)


def _plan(of: Waiting, _name: str) -> Item:
    approve = Key("a", "approve", ("approve",), f"approve the plan of {count(len(of.names), 'task')}")
    reject = Key("r", "reject", ("reject", "--plan", "--reason"), "reject the plan: reason", takes_text=True)
    return Item("plan", "!", "the plan", f"waits for your approval{_until(of)}", WAITS, (approve, reject))


def _paused(of: Waiting, name: str) -> Item:
    return Item(f"paused {name}", "!", name, f"is paused{_because(of)}", WAITS, (_resume(name),))


def _account(of: Waiting, name: str) -> Item:
    resume = Key("p", "try now", ("resume", "--account", name), f"try the account {name} now")
    text = f"rests until {moment(of.until_ms)}{_because(of)}"
    return Item(f"account {name}", "!", f"account {name}", text, WAITS, (resume,))


def _more_tasks(_of: Waiting, _name: str) -> Item:
    finish = Key("a", "finish", ("finish",), "finish: no more tasks will come")
    return Item("tasks", "!", "all tasks", "are settled, and more may come", WAITS, (finish,))


def _budget(of: Waiting, _name: str) -> Item:
    """Return a spent budget. The operator types the amount to add; the least that helps is shown."""
    *words, least = shlex.split(of.command)
    option = words[-1].removeprefix("--add-")
    ask = Key("b", "raise", tuple(words), f"raise by how many {option} (at least {least})", takes_text=True)
    return Item(f"{of.about} {','.join(of.names)}", "!", brief(enumerated(of.names)), of.reason, WAITS, (ask,))


def _trust(of: Waiting, name: str) -> Item:
    """Return a task above the trust of every agent, with the promotion of the nearest one."""
    _, *agent = shlex.split(of.command)  # no agent can be promoted so far
    words = ("trust", *agent, "--reason")
    promote = (Key("u", "promote", words, f"promote {agent[0]}: reason", takes_text=True),) if agent else ()
    return Item(f"{of.about} {name}", "!", name, of.reason, WAITS, (*promote, *_looks(name)))


_WAITING: Final[Mapping[Awaited, Callable[[Waiting, str], Item]]] = {
    Awaited.QUESTION: _question,
    Awaited.TASK: _approval,
    Awaited.PLAN: _plan,
    Awaited.AGENT: _paused,
    Awaited.ACCOUNT: _account,
    Awaited.TASKS: _more_tasks,
    Awaited.BUDGET: _budget,
    Awaited.TRUST: _trust,
}


def _because(of: Waiting) -> str:
    return f" ({brief(of.reason)})" if of.reason else ""


def _reject(name: str) -> Key:
    return Key("r", "reject", ("reject", name, "--reason"), f"reject {name}: reason", takes_text=True)


def _resume(name: str) -> Key:
    return Key("p", "resume", ("resume", name))


def _looks(name: str, *, is_task: bool = True, has_diff: bool = True) -> tuple[Key, ...]:
    """Return the keys that show more of a task or an agent."""
    kind = "task" if is_task else "agent"
    diff = (Key("d", "diff", ("diff", name), shows=True),) if is_task and has_diff else ()
    output = Key("o", "output", ("output", f"{kind}:{name}", "--follow", "--last", "200"), shows=True)
    return (*diff, output, Key("s", "show", ("show", f"{kind}:{name}"), shows=True))


def _task(of: TaskStatus) -> Item:
    is_broken = _is_broken(of)
    state = of.in_words
    owner = f" with {of.owner}" if of.owner else ""
    attempt = f", attempt {of.attempts}" if of.attempts > 1 else ""
    reason = unwrapped(of.held_up.removeprefix(f"{state} by ") or of.reason)
    because = f"{' by ' if of.held_up.startswith(state) else ': '}{reason}" if reason else ""
    keys = (*_looks(of.id), Key("y", "why", ("why", of.id), shows=True))
    if is_broken and not of.held_up:  # a task that another one blocks goes on with that one
        retry = Key("t", "retry", ("retry", of.id), f"retry {of.id} once more")
        said = f"has failed for good{because}" if of.state == State.FAILED else f"{state}{because}"
        return Item(f"failure {of.id}", "x", of.id, said, FAILED, (retry, *keys))
    text = f"{state}{owner}{attempt}{because}"
    if is_broken:
        return Item(f"failure {of.id}", "x", of.id, text, FAILED, keys)
    return Item(f"task {of.id}", " ", of.id, text, "", keys)


def _agent(of: AgentStatus) -> Item:
    is_paused, name = of.desired_state == "Pause", of.name
    pause = Key("p", "pause", ("pause", name), f"pause {name}, and interrupt its session")
    send = Key("m", "message", ("send", name), f"message to {name}", takes_text=True)
    on = () if of.state in {"Stopped", "stopped"} else (_resume(name) if is_paused else pause, send)
    return Item(f"agent {name}", " ", name, "", "", (*on, *_looks(name, is_task=False)), of)


def readable(keys: Iterator[Key] | Sequence[Key]) -> str:
    """Return keys as a line: ``a approve  r reject``."""
    return "  ".join(f"{each.key} {each.label}" for each in keys)
