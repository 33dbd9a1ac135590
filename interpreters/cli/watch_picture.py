"""The picture of the command ``watch``: headline and notices of the live display, and the list with a cursor."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from lifefold.core.fleet.system.rerun import is_over
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.picture import Picture, in_width, state_of
from lifefold.interpreters.cli.watch_items import FAILED, Item, items, readable
from lifefold.interpreters.cli.watch_keys import Screen, question
from lifefold.interpreters.cli.watched import Followed
from lifefold.interpreters.cli.wording import age, as_typed, cut_in_the_middle, next_of, work_of
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.fleet_runner.agent_looks import style

NAME_CHARACTERS: Final = 18
"""The widest column of names."""

STATE_CHARACTERS: Final = 18
"""The width of the column of states with their ages."""

NOTICE_LINES: Final = 3
"""The most lines of notices."""

HOST_LINES: Final = 2
"""The most lines of hosts."""

NEWS_LINES: Final = 6
"""The most recent transitions, if the list leaves room for them."""

_CHOOSE: Final = "↑↓ choose"
_QUIT: Final = "q quit"
_GONE: Final = " · no runner is at work"
_OVER: Final = " · the fleet is over"


class WatchPicture(Picture):
    """Draws the list of a fleet, and reads what is on it."""

    def __init__(self, of: Followed, account: Account) -> None:
        """Begin to watch the fleet."""
        super().__init__(of, account)
        self._followed: Final = of
        self._list: tuple[int, tuple[Item, ...]] = (-1, ())

    def items(self) -> tuple[Item, ...]:
        """Return the list, made anew when the log has more entries."""
        if not self._of.aggregates:
            return ()
        known = self._now()
        if self._list[0] != known.entries:
            self._list = known.entries, items(self._of.aggregates, known.tasks)
        return self._list[1]

    def drawn(self, screen: Screen, width: int, height: int) -> RenderableType:
        """Return the picture, ``height`` lines high, with the cursor of a screen."""
        every = self.items()
        if not every:
            return Text("the fleet has not begun yet; q quits")
        tasks = self._now().tasks
        head = self._headline(tasks, width)
        if is_over(self._of.aggregates):
            head.append(_OVER, "bold")
        elif not self._followed.runs:
            head.append(_GONE, f"bold {FAILED}")
        stuck = self._stuck(width) if self._followed.runs else []
        top = [*in_width(head, width), *stuck, *self._notices(width, NOTICE_LINES), *self._hosts(width, HOST_LINES)]
        foot = self._foot(screen, every, width)
        room = max(1, height - len(top) - len(foot))
        rows = self._rows(screen, every, width, room)
        left = room - len(rows)
        news = list(self._told(min(NEWS_LINES, left - 1))) if left > 1 else []
        return Group(*top, *rows, *(Text("") for _ in range(left - len(news))), *news, *foot)

    def _rows(self, screen: Screen, every: Sequence[Item], width: int, room: int) -> list[Text]:
        """Return the lines around the cursor, with the numbers of those that do not fit."""
        if len(every) <= room:
            shown, above, below = range(len(every)), 0, 0
        else:
            inner = max(1, room - 1)
            first = max(0, min(screen.place - inner + 2, len(every) - inner)) if screen.place >= inner - 1 else 0
            shown = range(first, min(len(every), first + inner))
            above, below = first, len(every) - first - len(shown)
        names = min(NAME_CHARACTERS, max(len(each.name) for each in every))
        rows = [self._row(every[place], names, width, is_chosen=place == screen.place) for place in shown]
        if above or below:
            more = ", ".join(f"{count} more {where}" for count, where in ((above, "above"), (below, "below")) if count)
            rows.append(Text(f"  … {more}", "dim"))
        return rows

    def _row(self, item: Item, names: int, width: int, *, is_chosen: bool) -> Text:
        name = f"{cut_in_the_middle(item.name, names):<{names}}"
        row = Text.assemble("> " if is_chosen else "  ", no_wrap=True, overflow="ellipsis")
        if item.agent is None:
            row.append(f"{item.mark} {name}  {as_typed(item.text)}", item.style)
        else:
            row.append_text(self._of_agent(item.agent, name))
        row.truncate(width, overflow="ellipsis")
        if is_chosen:
            row.stylize("reverse")
        return row

    def _of_agent(self, agent: AgentStatus, name: str) -> Text:
        """Return the row of an agent: mark, state, how long, its work, its next step."""
        now_ms = self._of.now_ms()
        found = self._looks(agent, now_ms)
        mark = (" ", "") if found is None else (found.indicator, style(found))
        state = state_of(agent, now_ms, wide=False)
        if not agent.silent_since_ms:  # a silence has its own length there
            state.append(f" {age(now_ms - agent.since_ms)}")
        state.pad_right(max(0, STATE_CHARACTERS - len(state)))
        work, next_step = work_of(agent), next_of(agent, now_ms)
        more = "  ".join(each for each in (work, next_step) if each != "-")
        return Text.assemble(mark, f" {name}  ", state, f"  {more}")

    def _foot(self, screen: Screen, every: Sequence[Item], width: int) -> list[Text]:
        """Return the question under way, or the last answer, and the keys of the chosen item."""
        asked = question(screen)
        said = Text(asked or screen.said, "bold" if asked else "", no_wrap=True)
        if asked and len(said) >= width:  # the end of what is typed stays visible
            said = said[len(said) - width + 1 :]
        said.truncate(width, overflow="ellipsis")
        keys = "" if asked else readable(every[min(screen.place, len(every) - 1)].keys)
        typing = "Enter sends it  Esc leaves it" if asked and screen.asked and screen.asked.takes_text else ""
        every_key = "  ".join(filter(None, (keys, _CHOOSE, _QUIT)))
        short = every_key if len(every_key) <= width else "  ".join(filter(None, (_QUIT, keys)))
        line = Text(typing or short, "reverse", no_wrap=True, overflow="ellipsis")
        line.truncate(width, overflow="ellipsis", pad=True)
        return [said, line]
