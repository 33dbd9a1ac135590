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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from lifefold.interpreters.report.emitted_file import docstring

Json = dict[str, Any]


class UnusableStatechart(ValueError):
    """The configuration cannot become a table; the message names the place and the reason."""


class _Arm(NamedTuple):
    """A transition of the innermost states ``sources``; None are all states. ``target`` None stays."""

    sources: tuple[str, ...] | None
    event: str
    target: str | None
    guard: str
    actions: tuple[str, ...]
    reenters: bool


class _Timer(NamedTuple):
    states: tuple[str, ...]
    event: str
    delay: int | str


class _Activity(NamedTuple):
    states: tuple[str, ...]
    source: str
    yields: tuple[str, ...]
    last: tuple[str, ...]


class _Node:
    """A state of the configuration, with the ones in it."""

    def __init__(self, key: str, config: Any, around: "_Node | None" = None) -> None:
        if not isinstance(config, dict):
            raise UnusableStatechart(f"{key}: a state is an object, not {config!r}")
        self.key: Final = key
        self.config: Final[Json] = config
        self.around: Final = around
        self.path: Final[str] = key if around is None else f"{around.path}.{key}"
        states = config.get("states") or {}
        self.nodes: Final = {str(name): _Node(str(name), each, self) for name, each in states.items()}
        self._must_be_usable()

    def _must_be_usable(self) -> None:
        config = self.config
        if config.get("type") in {"parallel", "history"}:
            raise UnusableStatechart(f"{self.path}: a {config['type']} state; a table has one state at a time")
        if config.get("always"):
            raise UnusableStatechart(f"{self.path}: always; a row needs an event")
        if "*" in (config.get("on") or {}):
            raise UnusableStatechart(f"{self.path}: the event *; a row has one type of event")
        if config.get("onDone"):
            raise UnusableStatechart(f"{self.path}: onDone of a state; give the event a name")

    def everything(self) -> "Iterator[_Node]":
        """Yield this node and all nodes in it, outer ones first."""
        yield self
        for each in self.nodes.values():
            yield from each.everything()

    def leaves(self) -> "list[_Node]":
        """Return the innermost states in it, itself if there are none."""
        return [each for each in self.everything() if not each.nodes]

    def first(self) -> "_Node":
        """Return the innermost state in which it begins."""
        if not self.nodes:
            return self
        name = self.config.get("initial")
        found = self.nodes.get(str(name)) if name is not None else next(iter(self.nodes.values()))
        if found is None:
            raise UnusableStatechart(f"{self.path}: initial {name!r} is none of {', '.join(self.nodes)}")
        return found.first()


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


class _Reader:
    """Reads a configuration into states, arms, timers and activities."""

    def __init__(self, config: Json) -> None:
        self.root: Final = _Node(str(config.get("id") or "machine"), config)
        if not self.root.nodes:
            raise UnusableStatechart(f"{self.root.path}: it has no states")
        self._by_id: Final = {str(each.config.get("id") or each.path): each for each in self.root.everything()}
        self.states: Final = [each.path for each in self.root.leaves()]
        self.final: Final = [
            each.path for each in self.root.nodes.values() if not each.nodes and each.config.get("type") == "final"
        ]
        self.titles: Final = {each.path: self._title(each) for each in self.root.leaves()}
        self.initial: Final = self.root.first().path
        self.timers: Final[list[_Timer]] = []
        self.activities: Final[dict[str, _Activity]] = {}
        self.notes: Final[list[str]] = []
        self._inner: Final[list[_Arm]] = []
        self._outer: Final[list[_Arm]] = []
        for each in sorted(self.root.everything(), key=lambda of: -of.path.count(".")):
            self._read(each)

    @property
    def arms(self) -> list[_Arm]:
        """All transitions: inner states first, so that the first row that fits is the one of the statechart."""
        return [*self._inner, *self._outer]

    @staticmethod
    def _title(node: _Node) -> str:
        """Return the name of a state: its description if the key was made of that, as the exported ones are."""
        about = node.config.get("description")
        is_title = isinstance(about, str) and re.sub(r"\W+", "_", about, flags=re.ASCII).strip("_") == node.key
        return str(about) if is_title else node.key

    def _read(self, node: _Node) -> None:
        states = tuple(each.path for each in node.leaves() if each.path not in self.final)
        for name, arms in (node.config.get("on") or {}).items():
            self._add(node, states, str(name), arms)
        for delay, arms in (node.config.get("after") or {}).items():
            event = f"{_pascal(node.key)}After{_pascal(str(delay))}"
            self.timers.append(_Timer(states, event, int(delay) if str(delay).isdecimal() else str(delay)))
            self._add(node, states, event, arms)
        for each in _listed(node.config.get("invoke")):
            self._invoke(node, states, each)
        for when in ("entry", "exit"):
            if names := [_name(each) for each in _listed(node.config.get(when))]:
                self.notes.append(f"{when} of {node.path}: {', '.join(names)}")

    def _invoke(self, node: _Node, states: tuple[str, ...], config: Any) -> None:
        source = _name(config.get("src")) if isinstance(config, dict) else str(config)
        given = config.get("input") if isinstance(config, dict) else None
        if source == "timer" and isinstance(given, dict) and {"event", "delay"} <= given.keys():
            self.timers.append(_Timer(states, str(given["event"]), given["delay"]))
            return
        yields = ((node.config.get("meta") or {}).get("yields") or {}).get(source, ())
        last: list[str] = []
        for key, end in (("onDone", "Done"), ("onError", "Failed")):
            if isinstance(config, dict) and config.get(key):
                event = f"{_pascal(source)}{end}"
                last.append(event)
                self._add(node, states, event, config[key])
        known = self.activities.get(source, _Activity((), source, (), ()))
        self.activities[source] = _Activity(
            tuple(dict.fromkeys((*known.states, *states))),
            source,
            tuple(dict.fromkeys((*known.yields, *map(str, yields)))),
            tuple(dict.fromkeys((*known.last, *last))),
        )

    def _add(self, node: _Node, states: tuple[str, ...], event: str, arms: Any) -> None:
        for each in _listed(arms):
            arm = {"target": each} if isinstance(each, str) else each
            if not isinstance(arm, dict):
                raise UnusableStatechart(f"{node.path}: {event}: a transition is an object or a target, not {arm!r}")
            target = self._target(node, arm.get("target"))
            if not node.nodes:
                is_own = target == node.path
                reenters = bool(arm.get("reenter")) and is_own
                kept = target if reenters or not is_own else None
                self._inner.append(_Arm(states, event, kept, _guard(arm), _actions(arm), reenters))
                continue
            is_all = set(states) == set(self.states) - set(self.final) and target in self.final
            self._outer.append(_Arm(None if is_all else states, event, target, _guard(arm), _actions(arm), False))  # noqa: FBT003 - a field

    def _target(self, node: _Node, given: Any) -> str | None:
        if given is None or given == []:
            return None
        if isinstance(given, list):
            (given,) = given if len(given) == 1 else (str(given),)
        text = str(given)
        if text.startswith("#"):
            found = self._by_id.get(text[1:])
        elif text.startswith("."):
            found = _inside(node, text[1:])
        else:
            found = _inside(node.around or node, text)
        if found is None:
            raise UnusableStatechart(f"{node.path}: there is no state {text!r}")
        return found.first().path


def _inside(node: _Node, path: str) -> _Node | None:
    found: _Node | None = node
    for part in path.split("."):
        found = None if found is None else found.nodes.get(part)
    return found


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def _name(value: Any) -> str:
    """Return the name of a guard, an action or an actor, which may have parameters beside it."""
    if isinstance(value, dict):
        value = value.get("type")
    if not isinstance(value, str) or not value:
        raise UnusableStatechart(f"a guard, an action or an actor has a name, as a text; found: {value!r}")
    return value


def _guard(arm: Mapping[str, Any]) -> str:
    return _name(arm["guard"]) if arm.get("guard") else ""


def _actions(arm: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_name(each) for each in _listed(arm.get("actions"))))


def _pascal(text: str) -> str:
    return "".join(each[:1].upper() + each[1:] for each in re.split(r"\W+|_", text, flags=re.ASCII))


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
    return _Module(_Reader(config)).source()


USED: Final = (
    "ANY", "STAY", "Activity", "Effect", "Event", "Machine", "Record", "State", "Step",
    "after", "does", "machine", "row",
)  # fmt: skip
"""The names that the module imports or gives."""


class _Module:
    """Writes what was read as the source of a module."""

    def __init__(self, read: _Reader) -> None:
        self._read: Final = read
        self._names: Final = _Names(*USED)
        self._used: Final = {"Event", "Machine", "Record", "State", "row"}
        name = _pascal(read.root.key) or "Machine"
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
        return self._names.of("event", name, name if name.isidentifier() else _pascal(name))

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
        context = self._read.root.config.get("context")
        for name, value in context.items() if isinstance(context, dict) else ():
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
            names = [str(each) for each in (node.config.get("meta") or {}).get("postpones", ())]
            if known := [self._events[each] for each in names if each in self._events]:
                found.append(f"{self._state}.{self._members[node.path]}: {_tuple(known)}")
        return found

    def _row(self, arm: _Arm, outside: list[str]) -> str:
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
    return name if name.isidentifier() else _pascal(name)


def _tuple(parts: Iterable[str]) -> str:
    every = list(parts)
    return every[0] if len(every) == 1 else f"({', '.join(every)})"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
