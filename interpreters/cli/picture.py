"""A picture of a fleet that fits the terminal, with counts of the parts left out.

From the top: progress, decisions that the fleet waits for, notices, agents, tasks, recent transitions. Notices are not
cut. Agents and tasks share the lines between them; the recent transitions get the rest.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from lifefold.core.kernel import Reaction, Refusal
from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.cli import awaited, concerns, host_lines, logs
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.attention import agents_first, counts, in_words, mood, tasks_first
from lifefold.interpreters.cli.colours import style_of
from lifefold.interpreters.cli.story_lines import short_line
from lifefold.interpreters.cli.watched import Watched
from lifefold.interpreters.cli.wording import (
    age,
    as_typed,
    by_number,
    coming,
    cost,
    cut_in_the_middle,
    next_of,
    work_of,
)
from lifefold.interpreters.explain import status, task_status, words
from lifefold.interpreters.explain.chronicle import Chronicle, News
from lifefold.interpreters.explain.chronicle_words import Mood
from lifefold.interpreters.explain.pending import Waiting
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.fleet_runner.agent_looks import Looks, looks, style
from lifefold.interpreters.fleet_runner.hosts import evidence_of
from lifefold.interpreters.fleet_runner.process_evidence import Evidence

STYLES: Final = {
    "CoolingDown": style_of(Mood.FAILED),
    "Stopped": "dim",
    "suspended": style_of(Mood.WAITS),
    "stopped": "dim",
    "failed": style_of(Mood.FAILED),
}
"""The styles of agents and services by their state, where it needs attention or is over."""

COLUMNS: Final = ("AGENT", "STATE", "FOR", "TASK", "ATTEMPT", "PROCESS", "NEXT")
WIDE_CHARACTERS: Final = 100
NARROW: Final = (0, 1, 2, 3, 6)
"""The columns on a narrower terminal: agent, state, time in the state, task, next step."""
NARROWEST_CHARACTERS: Final = 60
"""Below this width the column NEXT is left out."""

FEWEST_ROWS: Final = 3
"""The fewest agents for which a table is drawn if not all fit."""

STUCK: Final = 3
"""The most agents that are named as stuck; the others are counted."""

NOTICES: Final = 3
OLD_MS: Final = 2_000
"""The age at which a notice shows its age, because its figures were true then."""
LOOK_MS: Final = 1_000
"""The age of an observation of a process at which the process is observed again."""
NEWS_KEPT: Final = 200
NEWS_WANTED: Final = 4
"""The lines that agents and tasks leave to recent transitions, if possible."""


class Picture:
    """Observes a fleet, and draws it."""

    def __init__(self, of: Watched, account: Account) -> None:
        """Begin to watch the fleet."""
        self._of = of
        self._account = account
        self._log = logs.option(of.folder.log)
        self._news: deque[News] = deque(maxlen=NEWS_KEPT)
        self._chronicle = Chronicle(account.attempts)
        self._known: _Known | None = None
        self._evidence: dict[str, tuple[int, Evidence | None]] = {}
        of.observers.append(self._observe)

    def _observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        if isinstance(outcome, Reaction):
            self._news += (news for news, _ in self._chronicle.told(aggregate, outcome))

    def _now(self) -> "_Known":
        """Return the state of the fleet, cached until the next entry."""
        there = self._of.aggregates
        entries = sum(each.version for each in there.values())
        if self._known is None or self._known.entries != entries:
            tasks = task_status.counted(self._account.attempted(task_status.tasks(there)))
            if not awaited.goes_on(there):
                tasks = task_status.at_rest(tasks)
            found = status.at_attempts(status.agents(there), tasks)
            agents = sorted(found, key=lambda agent: by_number(agent.name))
            self._known = _Known(entries, tasks, agents, awaited.waiting(there))
        return self._known

    def draw(self, width: int, height: int, desk: str = "") -> RenderableType:
        """Return the picture, ``width`` columns wide and at most ``height`` lines high.

        ``desk`` is the address of the desk beside the run, which stands on lines of its own; empty without one.
        """
        if not self._of.aggregates:
            return Text("starting…")
        tasks = self._now().tasks
        top = [
            *in_width(self._headline(tasks, width), width),
            *(in_width(Text(desk, Style(dim=True, link=desk)), width) if desk else ()),
            *self._leaving(width),
            *self._awaited(width, max(1, height // 4)),
            *self._failed(width, max(1, height // 5)),
            *self._stuck(width),
            *self._notices(width, height // 2),
            *self._hosts(width, max(1, height // 6)),
        ]
        room = height - len(top) - 3  # two empty lines, and one for the cursor at the end
        news = min(len(self._news), NEWS_WANTED, max(0, room // 4))
        task_lines = _tasks(tasks, width, max(1, room // 4), self._of.now_ms())
        agents, agent_lines = self._agents(width, max(2, room - news - len(task_lines)))
        left = max(0, room - len(task_lines) - agent_lines)
        return Group(*top, agents, Text(""), *task_lines, Text(""), *self._told(left))

    def _headline(self, tasks: Sequence[TaskStatus], width: int) -> Text:
        closed = sum(each.state == "CLOSED" for each in tasks)
        cells = 24 if width >= WIDE_CHARACTERS else 8
        bar = "█" * round(cells * closed / len(tasks)) if tasks else ""
        text = Text.assemble(
            (f"fleet {self._of.name}  ", "bold"), f"{bar:░<{cells}} {closed}/{len(tasks)} tasks closed"
        )
        for its_mood, state, count in counts(each for each in tasks if each.state != "CLOSED"):
            text.append(f" · {count} {state}", style_of(its_mood))
        total = self._account.spending.total
        return text.append(f" · {cost(total)} spent") if total != Usage() else text

    def _leaving(self, width: int) -> list[Text]:
        sessions, runs = self._of.live()
        asked = f"{sessions} {'session is' if sessions == 1 else 'sessions are'} asked to end" if sessions else ""
        waited = f"{runs} {'run is' if runs == 1 else 'runs are'} waited for" if runs else ""
        match self._of.leaving:
            case 0:
                return []
            case 1 if sessions or runs:
                words = f"leaving: {', '.join(filter(None, (asked, waited)))}; Ctrl-C again to kill them"
            case 1:
                words = "leaving: no session runs any more; Ctrl-C again to wait for nothing else"
            case _:
                words = "leaving at once"
        return in_width(Text(words, f"bold {style_of(Mood.WAITS)}"), width)

    def _awaited(self, width: int, lines: int) -> list[Text]:
        """Return the decisions that fit in ``lines``, at least the first, and the number of the others."""
        if self._of.leaving:
            return []
        waiting = self._now().waiting
        words = [f"! {line}" for line in awaited.lines(waiting, self._account.paused_by, self._log)]
        wrapped = [in_width(Text(each, f"bold {style_of(Mood.WAITS)}"), width) for each in words]
        fitting = max(1, sum(end <= lines for end in accumulate(len(each) for each in wrapped)))
        found = [line for each in wrapped[:fitting] for line in each]
        more = len(wrapped) - fitting
        return (
            [*found, Text(as_typed(f"! and {more} more: lifefold status{self._log}"), f"bold {style_of(Mood.WAITS)}")]
            if more > 0
            else found
        )

    def _failed(self, width: int, lines: int) -> list[Text]:
        """Return the tasks that have failed for good, each with its reason, in at most ``lines`` lines."""
        every = list(concerns.failed_briefly(self._now().tasks, width))
        return [Text(line, style_of(Mood.FAILED)) for line in concerns.lines(every, width, lines, colours=False)]

    def _stuck(self, width: int) -> list[Text]:
        """Return the agents that the stall detector has warned of, by the rule and the words of ``lifefold status``."""
        said = [f"! {each}" for each in awaited.stuck(self._now().agents, self._of.now_ms())]
        lines = [line for each in said[:STUCK] for line in in_width(Text(each, f"bold {style_of(Mood.FAILED)}"), width)]
        more = len(said) - STUCK
        return lines if more <= 0 else [*lines, Text(f"! and {more} more are stuck", f"bold {style_of(Mood.FAILED)}")]

    def _notices(self, width: int, lines: int) -> list[Text]:
        """Return the latest notices that still hold, in full: as many as fit in ``lines``, at least one."""
        found: list[Text] = []
        now_ms = self._of.now_ms()
        for agent, message, at_ms in reversed(self._of.standing()[-NOTICES:]):
            ago = f" ({age(now_ms - at_ms)} ago)" if now_ms - at_ms >= OLD_MS else ""
            wrapped = in_width(Text(as_typed(f"! {agent}: {message}{ago}"), f"bold {style_of(Mood.FAILED)}"), width)
            if found and len(found) + len(wrapped) > lines:
                break
            found = wrapped + found
        return found

    def _hosts(self, width: int, lines: int) -> list[Text]:
        """Return the hosts in at most ``lines`` lines; nothing for a fleet on one machine."""
        every = host_lines.briefly(each.status for each in self._of.hosts())
        words = [Text(f"{each}  ", style_of(Mood.FAILED) if is_odd else "") for each, is_odd in every]
        return _in_lines("HOSTS", words, width, lines) if words else []

    def _agents(self, width: int, lines: int) -> tuple[RenderableType, int]:
        """Return the agents in at most ``lines`` lines, and the number of lines: a table if enough agents fit.

        With less room they are listed one after the other, as tasks are.
        """
        now_ms = self._of.now_ms()
        agents = self._now().agents
        fitting = len(agents) if len(agents) < lines else lines - 2
        if fitting < len(agents):
            agents = agents_first(agents)
        if fitting < min(len(agents), FEWEST_ROWS):
            words = [
                Text.assemble(f"{each.name}:", _state(each, self._looks(each, now_ms), now_ms, wide=False), "  ")
                for each in agents
            ]
            listed = _in_lines("AGENTS", words, width, lines)
            return Group(*listed), len(listed)
        shown = _columns(width)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for index in shown:
            table.add_column(COLUMNS[index], no_wrap=True)
        pid, wide = self._of.pid, width >= WIDE_CHARACTERS
        rows = [
            list(_cells(agent, self._looks(agent, now_ms), pid(agent), now_ms, wide=wide)) for agent in agents[:fitting]
        ]
        rows = [[cells[index] for index in shown] for cells in rows]
        for cells in _fitted(rows, [COLUMNS[index] for index in shown], width):
            table.add_row(*cells)
        if fitting < len(agents):
            table.add_row(f"and {len(agents) - fitting} more")
        return table, table.row_count + 1

    def _looks(self, agent: AgentStatus, now_ms: int) -> Looks | None:
        """Return how an agent looks; its process is observed once a second."""
        observed_ms, evidence = self._evidence.get(agent.name, (-LOOK_MS, None))
        if agent.processes and now_ms - observed_ms >= LOOK_MS:
            evidence = evidence_of(self._of.folder, agent, self._of.hosts())
            self._evidence[agent.name] = (now_ms, evidence)
        return looks(agent, evidence if agent.processes else None, now_ms, runs=True)

    def _told(self, lines: int) -> Iterator[Text]:
        for each in list(self._news)[-lines:] if lines else ():
            style = style_of(Mood.FAILED) if each.mood is Mood.FAILED else "dim"
            yield Text(short_line(each), style=style, no_wrap=True, overflow="ellipsis")


class _Known(NamedTuple):
    """The state of the fleet after a number of entries, without ages."""

    entries: int
    tasks: Sequence[TaskStatus]
    agents: Sequence[AgentStatus]
    waiting: Sequence[Waiting]


NAMES: Final = ("TASK", "AGENT")
"""The columns that are shortened if the table is too wide, in this order."""

NAME_CHARACTERS: Final = 10
"""The fewest characters of a shortened name."""

_BETWEEN: Final = 2
"""The characters between two columns."""


def _fitted(rows: list[list[Text]], heads: Sequence[str], width: int) -> list[list[Text]]:
    """Return rows with names cut in the middle where needed; the ends of names tell them apart."""
    widths = [max(len(head), *(len(row[n]) for row in rows)) if rows else 0 for n, head in enumerate(heads)]
    over = sum(widths) + _BETWEEN * (len(heads) - 1) - width
    for name in NAMES:
        place = heads.index(name)
        room = max(NAME_CHARACTERS, widths[place] - max(0, over))
        over -= max(0, widths[place] - room)
        for row in rows:
            row[place].plain = cut_in_the_middle(row[place].plain, room)
    return rows


def _columns(width: int) -> Sequence[int]:
    if width >= WIDE_CHARACTERS:
        return range(len(COLUMNS))
    return NARROW if width >= NARROWEST_CHARACTERS else NARROW[:-1]


def _cells(agent: AgentStatus, of: Looks | None, pid: int | None, now_ms: int, *, wide: bool) -> Iterator[Text]:
    yield Text(agent.name)
    yield _state(agent, of, now_ms, wide=wide)
    yield Text(age(now_ms - agent.since_ms))
    yield Text(work_of(agent), no_wrap=True, overflow="ellipsis")
    yield Text(str(agent.attempt or "-"))
    yield Text("-" if pid is None else str(pid))
    yield Text(next_of(agent, now_ms))


def _state(agent: AgentStatus, of: Looks | None, now_ms: int, *, wide: bool) -> Text:
    """Return the mark and the state of an agent, each in its colour."""
    said = state_of(agent, now_ms, wide=wide)
    return said if of is None else Text.assemble((f"{of.indicator} ", style(of)), said)


def state_of(agent: AgentStatus, now_ms: int, *, wide: bool) -> Text:
    """Return the state of an agent, in its colour; unless ``wide``, only its most important part."""
    state = doing = words.of_agent(agent.state, agent.task, agent.desired_state)
    if agent.doing in {"Preparing", "Verifying", "Merging", "Disputed"}:
        doing = f"{state} · {agent.doing.lower()}" if wide else agent.doing.lower()
    asks = agent.turn is not None and bool(agent.turn.questions)
    if agent.state == "Running" and agent.turn is not None and (asks or agent.turn.state in _SHOWN):
        doing = f"{state} · {agent.turn.in_words()}" if wide else "asks" if asks else _SHOWN[agent.turn.state]
    if agent.silent_since_ms:
        silent = f"silent {age(now_ms - agent.silent_since_ms)}"
        doing = f"{state} · {silent}" if wide else silent
    ending = " (ending)" if agent.state == "Stopped" and agent.processes else ""
    rests = _RESTS.get(agent.desired_state, "preempted" if agent.preempted_for else "")
    if rests:
        return Text(f"{doing} · {rests}" if wide else rests, style_of(Mood.WAITS))
    return Text(doing + ending, style_of(Mood.WAITS) if agent.silent_since_ms or asks else STYLES.get(agent.state, ""))


_SHOWN: Final = {"TOOL_USE": "tool", "COMPACTING": "compacting"}
"""The phases of a turn that say more than the state of the session, each with a short word."""

_RESTS: Final = {"Pause": "paused", "Hold": "held", "Drain": "draining"}
"""The words for desired states in which an agent begins nothing new."""


def _tasks(tasks: Sequence[TaskStatus], width: int, lines: int, now_ms: int) -> list[Text]:
    """Return the tasks, each in the colour of its state.

    If not all fit, those that need an operator come first, then those at work, and all others are counted.
    """
    every = [_task(task, now_ms) for task in tasks]
    if _fitting(every, width, lines) == len(every):
        found = in_width(_listed("TASKS", every, ""), width)
        if len(found) <= lines:
            return found
    first = tasks_first(tasks)
    named = [_task(task, now_ms) for task in first if task.state not in _COUNTED]
    fitting = _fitting(named, width, lines)
    while True:
        rest = [*first[fitting:]] if fitting < len(named) else [each for each in first if each.state in _COUNTED]
        found = in_width(_listed("TASKS", named[:fitting], f"and {in_words(rest)}" if rest else ""), width)
        if len(found) <= lines or not fitting:
            return found[:lines]
        fitting -= 1


_COUNTED: Final = frozenset({"OPEN", "CANCELLED", "CLOSED"})
"""The states whose tasks are only counted if not all tasks fit."""


def _in_lines(head: str, words: Sequence[Text], width: int, lines: int) -> list[Text]:
    """Return the words that fit in ``lines`` after a head, and the number of the others."""
    fitting = _fitting(words, width, lines)
    while True:
        more = f"and {len(words) - fitting} more" if fitting < len(words) else ""
        found = in_width(_listed(head, words[:fitting], more), width)
        if len(found) <= lines or not fitting:
            return found[:lines]
        fitting -= 1


def _fitting(words: Sequence[Text], width: int, lines: int) -> int:
    """Return about how many words fit, too many rather than too few."""
    return sum(end <= width * lines for end in accumulate(len(word) for word in words))


def _task(task: TaskStatus, now_ms: int) -> Text:
    attempt = f"attempt {task.attempts}" if task.attempts > 1 else ""
    more = ", ".join(filter(None, (attempt, coming(task.timer, now_ms) if task.timer else "")))
    state = task.in_words
    return Text(f"{task.id}:{state}{f' ({more})' if more else ''}  ", style_of(mood(task)))


def _listed(head: str, words: Sequence[Text], more: str) -> Text:
    return Text.assemble((f"{head}  ", "bold"), *words, more)


def in_width(text: Text, width: int) -> list[Text]:
    """Return a text as lines of at most ``width`` columns."""
    return list(text.wrap(_ANY_CONSOLE, width))


_ANY_CONSOLE: Final = Console()
"""The console that ``Text.wrap`` requires; it uses nothing of it."""
