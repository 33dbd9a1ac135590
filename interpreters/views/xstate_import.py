"""A Python module to complete from the JSON configuration of an XState (version 5) machine.

The module has the states, the events and the rows. Guards are functions that accept everything, actions are functions
that request an effect of their name, invoked actors are activities. Their author completes them.

- *Nested states are flattened.* A table has one level: each innermost state is a state, and transitions of a state
  around others come after theirs. A compound state as a target is its initial state.
- *A delayed transition* is a timer with an event of its own. *An invoked actor* is an activity; its ``onDone`` and
  ``onError`` are events that end it.
- *What a table cannot say is refused*: parallel and history states, transitions without an event, the event ``*``.
- *A state that no transition leads to* is declared ``detached`` and has no rows.
- *Entry and exit actions* are listed at the head of the module, because no row has them.
"""

import json
import keyword
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from lifefold.interpreters.report.emitted_file import docstring
from lifefold.interpreters.views.statechart import Arm, Json, Statechart, UnusableStatechart, pascal, table_of


class _Names:
    """Identifiers of a module, all different."""

    def __init__(self, *taken: str) -> None:
        self._taken: Final = {*taken, *keyword.kwlist, *keyword.softkwlist}
        self._known: Final[dict[tuple[str, str], str]] = {}

    def of(self, kind: str, text: str, wanted: str) -> str:
        """Return the identifier for a text of a kind: the wanted one, with a number if that is taken."""
        if (kind, text) not in self._known:
            clean = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or kind
            clean = f"_{clean}" if clean[0].isdigit() else clean
            name, number = clean, 1
            while name in self._taken:
                number += 1
                name = f"{clean}_{number}"
            self._taken.add(name)
            self._known[kind, text] = name
        return self._known[kind, text]


def _snake(text: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", text).lower()


def module_of(text: str) -> str:
    """Return the source of a module for a machine in JSON. Raises ``UnusableStatechart``."""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise UnusableStatechart(f"it is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise UnusableStatechart("the configuration of a machine is an object")
    return _Module(Statechart(cast("Json", config))).source()


USED: Final = (
    "ANY", "STAY", "Activity", "Effect", "Event", "Machine", "Record", "State", "Step",
    "after", "does", "machine", "row",
)  # fmt: skip
"""The names that the module imports or gives."""


class _Module:
    """Writes what was read as the source of a module."""

    def __init__(self, read: Statechart) -> None:
        self._read: Final = read
        self._names: Final = _Names(*USED)
        self._used: Final = {"Event", "Machine", "Record", "State", "row"}
        name = pascal(read.root.key) or "Machine"
        self._events: Final = {each: self._event(each) for each in self._event_names()}
        self._state: Final = self._names.of("class", "state", f"{name}State")
        self._record: Final = self._names.of("class", "record", name)
        members = _Names("name", "value")
        self._members: Final = {
            each: members.of("state", each, _snake(read.titles[each]).upper()) for each in read.states
        }
        self._actions: Final[dict[tuple[str, ...], str]] = {}
        self._during: Final[list[str]] = []

    def _event_names(self) -> list[str]:
        read = self._read
        of_timers = [each.event for each in read.timers]
        of_activities = [name for each in read.activities.values() for name in (*each.yields, *each.last)]
        return list(dict.fromkeys([*(each.event for each in read.arms), *of_timers, *of_activities]))

    def _event(self, name: str) -> str:
        return self._names.of("event", name, name if name.isidentifier() else pascal(name))

    def source(self) -> str:
        """Return the module."""
        parts = [*self._states(), *self._event_classes(), *self._record_class()]
        parts += [*self._guards(), *self._effects(), *self._during_parts()]
        machine = list(self._machine())
        imports = f"from lifefold import {', '.join(sorted(self._used, key=_by_name))}"
        head = [self._head(), ""]
        return "\n".join([*head, imports, "", "", *parts, *machine, ""])

    def _head(self) -> str:
        root = self._read.root
        about = root.config.get("description")
        lines = [f"The machine {root.key}, from a configuration of XState: complete its guards and actions."]
        lines += ["", *(str(about).splitlines())] if about else []
        if self._read.notes:
            lines += ["", "Actions that no row has:", "", *(f"- {each}" for each in self._read.notes)]
        return docstring("\n".join([*lines, ""]) if len(lines) > 1 else lines[0])

    def _states(self) -> Iterator[str]:
        yield f"class {self._state}(State):"
        yield f"    {docstring(f'The states of {self._read.root.key}.')}"
        yield ""
        for path, member in self._members.items():
            yield f"    {member} = {_quoted(self._read.titles[path])}"
        yield from ("", "")

    def _event_classes(self) -> Iterator[str]:
        for name, known in self._events.items():
            tag = "" if name == known else f", tag={_quoted(name)}"
            yield f"class {known}(Event, frozen=True{tag}):"
            yield f"    {docstring(f'The event {name}.')}"
            yield from ("", "")

    def _record_class(self) -> Iterator[str]:
        yield f"class {self._record}(Record, frozen=True):"
        yield f"    {docstring(f'What {self._read.root.key} knows.')}"
        yield ""
        yield f"    state: {self._state} = {self._state}.{self._members[self._read.initial]}"
        for name, value in table_of(self._read.root.config.get("context")).items():
            is_field = name.isidentifier() and not keyword.iskeyword(name) and name != "state"
            if is_field and isinstance(value, bool | int | float | str):
                yield f"    {name}: {type(value).__name__} = {_quoted(value)}"
        yield from ("", "")

    def _guards(self) -> Iterator[str]:
        for name in dict.fromkeys(each.guard for each in self._read.arms if each.guard):
            known = self._names.of("guard", name, name)
            yield f"def {known}(_record: {self._record}, _event: Event) -> bool:"
            yield f"    {docstring(f'Tell whether {name} holds: complete it.')}"
            yield "    return True"
            yield from ("", "")

    def _effects(self) -> Iterator[str]:
        every = dict.fromkeys(each.actions for each in self._read.arms if each.actions)
        effects = {name: self._names.of("effect", name, _pascal_if_needed(name)) for of in every for name in of}
        for name, known in effects.items():
            self._used.update(("Effect", "Step"))
            yield f"class {known}(Effect, frozen=True):"
            yield f"    {docstring(f'The action {name}: give it the fields that its handler needs.')}"
            yield from ("", "")
        for actions in every:
            known = self._names.of("action", " ".join(actions), "_and_".join(_snake(each) for each in actions))
            self._actions[actions] = known
            declared = " | ".join(effects[each] for each in actions)
            made = ", ".join(f"{effects[each]}()" for each in actions)
            all_of = ", ".join(actions)
            comma = "," if len(actions) == 1 else ""
            yield f"def {known}(record: {self._record}, _event: Event) -> Step[{self._record}, {declared}]:"
            yield f"    {docstring(f'Request {all_of}: complete what changes.')}"
            yield f"    return Step(record, ({made}{comma}))"
            yield from ("", "")

    def _during_parts(self) -> Iterator[str]:
        for each in self._read.activities.values():
            self._used.update(("Activity", "does"))
            known = self._names.of("activity", each.source, _pascal_if_needed(each.source))
            made = self._names.of("factory", each.source, _snake(each.source))
            yield f"class {known}(Activity, frozen=True):"
            yield f"    {docstring(f'The actor {each.source}: give it the fields that its handler needs.')}"
            yield from ("", "")
            yield f"def {made}(_record: {self._record}) -> {known}:"
            yield f"    {docstring(f'Return the activity {each.source}.')}"
            yield f"    return {known}()"
            yield from ("", "")
            options = [
                f", {option}={_tuple(self._events[name] for name in names)}"
                for option, names in (("yields", each.yields), ("last", each.last))
                if names
            ]
            self._during.append(f"{self._place(each.states)}: does({made}{''.join(options)})")
        for timer in self._read.timers:
            self._used.add("after")
            delay = str(timer.delay)
            if isinstance(timer.delay, str):
                delay = self._names.of("delay", timer.delay, timer.delay)
                if not any(f"after({delay}, " in other for other in self._during):
                    yield f"def {delay}(_record: {self._record}) -> int:"
                    yield f"    {docstring(f'Return the delay {timer.delay} in milliseconds: complete it.')}"
                    yield "    return 1_000"
                    yield from ("", "")
            self._during.append(f"{self._place(timer.states)}: after({delay}, {self._events[timer.event]})")

    def _place(self, states: Iterable[str]) -> str:
        return _tuple(f"{self._state}.{self._members[each]}" for each in states)

    def _machine(self) -> Iterator[str]:
        yield "machine = Machine("
        yield f"    {_quoted(self._read.root.key)},"
        yield f"    {self._record}(),"
        if about := self._read.root.config.get("description"):
            yield f"    about={_quoted(str(about))},"
        outside = self._outside()
        yield "    rows=("
        for each in self._read.arms:
            if each.sources is None or not set(each.sources) <= set(outside):
                yield f"        {self._row(each, outside)},"
        yield "    ),"
        if self._read.final:
            yield f"    final={{{', '.join(f'{self._state}.{self._members[each]}' for each in self._read.final)}}},"
        if outside:
            yield f"    detached={{{', '.join(f'{self._state}.{self._members[each]}' for each in outside)}}},"
        merged: dict[str, list[str]] = {}
        for line in self._during:
            place, _, part = line.partition(": ")
            merged.setdefault(place, []).append(part)
        if merged:
            yield "    during={"
            for place, parts in merged.items():
                yield f"        {place}: {_tuple(parts)},"
            yield "    },"
        postponed = self._postponed()
        if postponed:
            yield f"    postpone={{{', '.join(postponed)}}},"
        yield ")"

    def _outside(self) -> list[str]:
        """Return the states that no transition leads to, from the initial one on: the machine must name them."""
        known, found = {self._read.initial}, [self._read.initial]
        while found:
            state = found.pop()
            leads = (each.target for each in self._read.arms if each.sources is None or state in each.sources)
            new = [each for each in dict.fromkeys(leads) if each is not None and each not in known]
            known.update(new)
            found += new
        return [each for each in self._read.states if each not in known]

    def _postponed(self) -> list[str]:
        found: list[str] = []
        for node in self._read.root.leaves():
            names = [str(each) for each in table_of(node.config.get("meta")).get("postpones", ())]
            if known := [self._events[each] for each in names if each in self._events]:
                found.append(f"{self._state}.{self._members[node.path]}: {_tuple(known)}")
        return found

    def _row(self, arm: Arm, outside: list[str]) -> str:
        if arm.sources is None:
            self._used.add("ANY")
            source = "ANY"
        else:
            source = self._place(each for each in arm.sources if each not in outside)
        if arm.target is None:
            self._used.add("STAY")
        target = "STAY" if arm.target is None else f"{self._state}.{self._members[arm.target]}"
        action = f", {self._actions[arm.actions]}" if arm.actions else ""
        guard = f", when={self._names.of('guard', arm.guard, arm.guard)}" if arm.guard else ""
        restart = ", restart=True" if arm.reenters else ""
        return f"row({source}, {self._events[arm.event]}, {target}{action}{guard}{restart})"


def _by_name(name: str) -> tuple[int, str]:
    """Return the order of imports: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _pascal_if_needed(name: str) -> str:
    return name if name.isidentifier() else pascal(name)


def _tuple(parts: Iterable[str]) -> str:
    every = list(parts)
    return every[0] if len(every) == 1 else f"({', '.join(every)})"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
