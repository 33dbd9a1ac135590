"""The JSON configuration of an XState (version 5) machine as states of one level, with their transitions.

Nested states are flattened. Each innermost state is a state. Transitions of a state around others come after theirs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

Json = dict[str, Any]


class UnusableStatechart(ValueError):
    """The configuration cannot become a table; the message names the place and the reason."""


class Arm(NamedTuple):
    """A transition of the innermost states ``sources``; None are all states. ``target`` None stays."""

    sources: tuple[str, ...] | None
    event: str
    target: str | None
    guard: str
    actions: tuple[str, ...]
    reenters: bool


class Timer(NamedTuple):
    """A delayed transition: its ``event`` fires after the delay in these states."""

    states: tuple[str, ...]
    event: str
    delay: int | str


class Activity(NamedTuple):
    """An invoked actor of these states: events that it may report, and those that end it."""

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
        self.config: Final = cast("Json", config)
        self.around: Final = around
        self.path: Final[str] = key if around is None else f"{around.path}.{key}"
        states: Json = self.config.get("states") or {}
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


class Statechart:
    """A configuration as states of one level, arms, timers and activities."""

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
        self.timers: Final[list[Timer]] = []
        self.activities: Final[dict[str, Activity]] = {}
        self.notes: Final[list[str]] = []
        self._inner: Final[list[Arm]] = []
        self._outer: Final[list[Arm]] = []
        for each in sorted(self.root.everything(), key=lambda of: -of.path.count(".")):
            self._read(each)

    @property
    def arms(self) -> list[Arm]:
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
        on: Json = node.config.get("on") or {}
        after: Json = node.config.get("after") or {}
        for name, arms in on.items():
            self._add(node, states, str(name), arms)
        for delay, arms in after.items():
            event = f"{pascal(node.key)}After{pascal(str(delay))}"
            self.timers.append(Timer(states, event, int(delay) if str(delay).isdecimal() else str(delay)))
            self._add(node, states, event, arms)
        for each in _listed(node.config.get("invoke")):
            self._invoke(node, states, each)
        for when in ("entry", "exit"):
            if names := [_name(each) for each in _listed(node.config.get(when))]:
                self.notes.append(f"{when} of {node.path}: {', '.join(names)}")

    def _invoke(self, node: _Node, states: tuple[str, ...], config: Any) -> None:
        actor = table_of(config)
        source = _name(actor.get("src")) if isinstance(config, dict) else str(config)
        given = table_of(actor.get("input"))
        if source == "timer" and {"event", "delay"} <= given.keys():
            self.timers.append(Timer(states, str(given["event"]), given["delay"]))
            return
        yields = table_of(table_of(node.config.get("meta")).get("yields")).get(source, ())
        last: list[str] = []
        for key, end in (("onDone", "Done"), ("onError", "Failed")):
            if actor.get(key):
                event = f"{pascal(source)}{end}"
                last.append(event)
                self._add(node, states, event, actor[key])
        known = self.activities.get(source, Activity((), source, (), ()))
        self.activities[source] = Activity(
            tuple(dict.fromkeys((*known.states, *states))),
            source,
            tuple(dict.fromkeys((*known.yields, *map(str, yields)))),
            tuple(dict.fromkeys((*known.last, *last))),
        )

    def _add(self, node: _Node, states: tuple[str, ...], event: str, arms: Any) -> None:
        for each in _listed(arms):
            if not isinstance(each, dict | str):
                raise UnusableStatechart(f"{node.path}: {event}: a transition is an object or a target, not {each!r}")
            arm: Json = {"target": each} if isinstance(each, str) else cast("Json", each)
            target = self._target(node, arm.get("target"))
            if not node.nodes:
                is_own = target == node.path
                reenters = bool(arm.get("reenter")) and is_own
                kept = target if reenters or not is_own else None
                self._inner.append(Arm(states, event, kept, _guard(arm), _actions(arm), reenters))
                continue
            is_all = set(states) == set(self.states) - set(self.final) and target in self.final
            self._outer.append(Arm(None if is_all else states, event, target, _guard(arm), _actions(arm), False))  # noqa: FBT003 - a field

    def _target(self, node: _Node, given: Any) -> str | None:
        if given is None or given == []:
            return None
        several = _listed(given)
        text = str(several[0] if len(several) == 1 else given)
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
    if isinstance(value, list):
        return list(cast("Sequence[Any]", value))
    return [] if value is None else [value]


def table_of(value: object) -> Json:
    """Return a value as an object of JSON; an empty one if it is something else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def _name(value: Any) -> str:
    """Return the name of a guard, an action or an actor, which may have parameters beside it."""
    name = table_of(cast("object", value)).get("type") if isinstance(value, dict) else value
    if not isinstance(name, str) or not name:
        raise UnusableStatechart(f"a guard, an action or an actor has a name, as a text; found: {name!r}")
    return name


def _guard(arm: Mapping[str, Any]) -> str:
    return _name(arm["guard"]) if arm.get("guard") else ""


def _actions(arm: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_name(each) for each in _listed(arm.get("actions"))))


def pascal(text: str) -> str:
    """Return a text in the form of a class name."""
    return "".join(each[:1].upper() + each[1:] for each in re.split(r"\W+|_", text, flags=re.ASCII))
