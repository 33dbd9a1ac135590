"""A machine as the table of its document, for a comparison line by line.

A line of the document is one line here for each of its states. ``CoolingDown or Stopped`` is two, the first with its
condition. A line for every state is one, from ``ANY``. The effects are those of the row itself. Activities and timers
have sections of their own, since no document prints them as side effects.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from lifefold.core.kernel import ActivityScope, After, Does, Event, Machine
from lifefold.interpreters.views.outline import Arc, arcs, condition_of, duration, name_of, postponed

Cells = tuple[str, ...]


class Section(msgspec.Struct, frozen=True):
    """A titled table, for both renderings. Every row has as many cells as there are columns."""

    title: str
    note: str
    columns: Cells
    rows: tuple[Cells, ...]


def table_rows(machine: Machine[Any]) -> list[dict[str, Any]]:
    """Return the table as data, in its order: one entry per row and source state, ``ANY`` for a row of every state.

    ``event`` is the plain name of the event. Its variant is in ``when``, with the guard, in words ("Error and
    threshold reached"; empty if there is no condition). The first entry that fits is taken. ``effects`` are the names
    of their types.
    """
    return [
        {
            "from": _source(arc),
            "event": name_of(arc.row.event),
            "when": condition_of(arc.row),
            "to": arc.row.target_label,
            "effects": [effect.__name__ for effect in arc.row.effects],
        }
        for arc in arcs(machine)
    ]


def markdown(machine: Machine[Any]) -> str:
    """Return the machine in Markdown: the document's columns, then activities, timers and postponed events."""
    blocks = [f"# {machine.name}", *([_escape(machine.about)] if machine.about else [])]
    for section in sections(machine):
        blocks += [f"## {section.title}", *([_escape(section.note)] if section.note else []), _markdown_table(section)]
    return "\n\n".join(blocks) + "\n"


def plain(machine: Machine[Any], width: int = 120) -> str:
    """Return the machine for a terminal that is ``width`` characters wide, without colours."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - rich is slow to import, and only terminals need it
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(width=width, color_system=None, force_terminal=False, force_jupyter=False)
    with console.capture() as capture:
        console.print(Text(f"{machine.name}: {machine.about}" if machine.about else machine.name))
        for section in sections(machine):
            table = Table(*section.columns, box=SIMPLE_HEAD, pad_edge=False)
            for cells in section.rows:
                table.add_row(*(Text(cell) for cell in cells))
            console.print(Text(f"\n{section.title}"), *([Text(section.note)] if section.note else []), table, sep="\n")
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def sections(machine: Machine[Any]) -> tuple[Section, ...]:
    """Return all sections of a machine; those without rows are left out."""
    makers: tuple[Callable[[Machine[Any]], Section], ...] = (
        _local,
        _global,
        _activities,
        _timers,
        _postponed,
        _final,
        _detached,
    )
    return tuple(section for section in (make(machine) for make in makers) if section.rows)


_ROW_COLUMNS = ("From State", "Event", "To State", "Side Effect", "When")


def _local(machine: Machine[Any]) -> Section:
    rows = tuple(_cells(arc) for arc in arcs(machine) if not _is_global(arc, machine))
    return Section("Transitions", "", _ROW_COLUMNS, rows)


def _global(machine: Machine[Any]) -> Section:
    rows = tuple(_cells(arc) for arc in arcs(machine) if _is_global(arc, machine))
    note = "ANY is every state; a row of a single state is an exception to the ANY row of the same event."
    return Section("Global transitions", note, _ROW_COLUMNS, rows)


def _is_global(arc: Arc, machine: Machine[Any]) -> bool:
    """Tell whether a document prints the arc with those of any state: it is one, or differs only in its effect."""
    if arc.source is None:
        return True
    return any(r.sources is None and (r.event, r.target) == (arc.row.event, arc.row.target) for r in machine.rows)


def _source(arc: Arc) -> str:
    return "ANY" if arc.source is None else str(arc.source)


def _cells(arc: Arc) -> Cells:
    return _source(arc), arc.row.event_label, arc.row.target_label, ", ".join(arc.effects) or "None", arc.condition


def _activities(machine: Machine[Any]) -> Section:
    rows = tuple(
        (_where(machine, span), span.during.activity.__name__, _events(span.during.yields), _events(span.during.last))
        for span in machine.spans.values()
        if isinstance(span.during, Does)
    )
    note = "They begin when the first of their states is entered and are ended when the last is left, by whatever row."
    return Section("Activities", note, ("While In", "Goes On", "May Yield", "Over With"), rows)


_RESTORED = {"deadline": "keeps its deadline", "remaining": "keeps its remaining time", "restart": "starts again"}


def _timers(machine: Machine[Any]) -> Section:
    rows = tuple(
        (_where(machine, span), name_of(timer.event), duration(timer), _meaning(timer), _RESTORED[timer.restore])
        for span in machine.spans.values()
        if isinstance(timer := span.during, After)
    )
    return Section("Timers", "", ("While In", "Event", "After", "Meaning", "After A Crash"), rows)


def _postponed(machine: Machine[Any]) -> Section:
    waiting = ((state, postponed(machine, state)) for state in machine.states)
    rows = tuple((str(state), ", ".join(events)) for state, events in waiting if events)
    return Section("Postponed events", "They wait for the next state.", ("While In", "Events"), rows)


def _final(machine: Machine[Any]) -> Section:
    return Section("Final states", "", ("State",), tuple((str(s),) for s in machine.states if s in machine.final))


def _detached(machine: Machine[Any]) -> Section:
    rows = tuple((str(state),) for state in machine.states if state in machine.detached)
    return Section("States outside the table", "No row enters or leaves them.", ("State",), rows)


def _where(machine: Machine[Any], span: ActivityScope[Any]) -> str:
    return ", ".join(state for state in machine.states if state in span.states)


def _meaning(timer: After[Any]) -> str:
    """Return the first line of the docstring of a duration's function."""
    return (timer.duration_ms.__doc__ or "").partition("\n")[0].removeprefix("Return ").replace("``", "")


def _events(events: tuple[type[Event], ...]) -> str:
    return ", ".join(map(name_of, events))


def _markdown_table(section: Section) -> str:
    lines = [section.columns, tuple("---" for _ in section.columns), *section.rows]
    return "\n".join(f"| {' | '.join(_escape(cell) for cell in cells)} |" for cells in lines)


def _escape(text: str) -> str:
    """Keep a cell in its column and a lambda visible; other texts do not change."""
    return text.replace("|", "\\|").replace("<", "&lt;")
