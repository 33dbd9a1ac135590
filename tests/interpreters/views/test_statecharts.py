"""SCXML and XState take the same transitions as the machine that they were written from."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from charts import examples, ids, walk
from lifefold.core.kernel import After, Event, Machine, Record, Row, Step, row
from lifefold.core.lifecycles import session
from lifefold.effects import Begin, CancelTimer, Effect, End, StartTimer
from lifefold.interpreters.views import plain, scxml, xstate
from lifefold.interpreters.views.formats.chart import chart
from lifefold.interpreters.views.outline import name_of

W3C = "{http://www.w3.org/2005/07/scxml}"
RECORDS_LIMIT = 400

Taken = tuple[str, frozenset[str]] | None
"""Where a chart goes, and the effects it may ask for on the way; None if it takes nothing."""


def reached(machine: Machine[Any]) -> list[Record]:
    """Return records that examples of events lead to, nearest first, of every kind that is within the limit."""
    found = {machine.initial: None}
    frontier = [machine.initial]
    while frontier and len(found) < RECORDS_LIMIT:
        record = frontier.pop(0)
        steps = [machine.step(record, event) for event in examples(machine)]
        new = [step.record for step in steps if isinstance(step, Step) and step.record not in found]
        found |= dict.fromkeys(new)
        frontier += new
    return list(found)


def own(effects: tuple[Effect, ...]) -> frozenset[str]:
    """Return the names of the effects that a row asked for; the others are derived from its states."""
    derived = (Begin, End, StartTimer, CancelTimer)
    return frozenset(type(effect).__name__ for effect in effects if not isinstance(effect, derived))


def agrees(machine: Machine[Any], name_of: dict[str, str], take: Callable[[str, Record, Event], Taken]) -> int:
    """Compare a chart with its machine, record by record and event by event; return how many transitions were taken."""
    taken = 0
    for record in reached(machine):
        for event in examples(machine):
            step = machine.step(record, event)
            if record.state in machine.final:
                assert not isinstance(step, Step) or step.record.state == record.state
                continue
            answer = take(name_of[record.state], record, event)
            waits = type(event) in machine.postponed(record.state)
            if isinstance(step, Step) and not (waits and answer is None):
                assert answer is not None, (record, event)
                assert answer[0] == name_of[step.record.state], (record, event)
                assert own(step.effects) <= answer[1]
                taken += 1
            else:
                assert answer is None, (record, event)
    return taken


def holds(guards: dict[str, Row[Any]], name: str | None, record: Record, event: Event) -> bool:
    if name is None:
        return True
    pattern, when = guards[name].pattern, guards[name].when
    return (pattern is None or pattern.test(event)) and (when is None or when(record, event))


class Document:
    """An SCXML document, walked as the standard says: a state's own transitions first, then its parents'."""

    def __init__(self, machine: Machine[Any]) -> None:
        self.guards = chart(machine).guards
        self.root = ET.fromstring(scxml(machine))  # noqa: S314 - we wrote it
        self.parents = {child: parent for parent in self.root.iter() for child in parent}
        nodes = [element for element in self.root.iter() if element.tag in {f"{W3C}state", f"{W3C}final"}]
        self.states = {element.attrib["id"]: element for element in nodes}

    def around(self, identifier: str) -> list[ET.Element]:
        """Return a state and those around it, from the inside."""
        found, element = [self.states[identifier]], self.states[identifier]
        while (element := self.parents[element]) is not self.root:
            found.append(element)
        return found

    def take(self, identifier: str, record: Record, event: Event) -> Taken:
        transition = self.transition(identifier, record, event)
        if transition is None:
            return None
        effects = {each.attrib["event"].removeprefix("effect.") for each in transition.findall(f"{W3C}raise")}
        return transition.get("target", identifier), frozenset(effects)

    def transition(self, identifier: str, record: Record, event: Event) -> ET.Element | None:
        for element in self.around(identifier):
            for transition in element.findall(f"{W3C}transition"):
                wanted = transition.get("event") == name_of(type(event))
                if wanted and holds(self.guards, transition.get("cond"), record, event):
                    return transition
        return None

    def left(self, identifier: str, transition: ET.Element) -> set[str]:
        """Return the states that a transition leaves: up to the nearest that is around its source and its target."""
        target = transition.get("target")
        if target is None:
            return set()
        above = self.around(self.parents[transition].attrib["id"])[1:]
        stays = next((element for element in above if element in self.around(target)[1:]), None)
        around = self.around(identifier)
        return {element.attrib["id"] for element in (around[: around.index(stays)] if stays is not None else around)}

    def going_on(self, identifier: str) -> dict[str, str]:
        """Return what goes on in a state, timers and activities, each with the state that declares it."""
        found: dict[str, str] = {}
        for element in self.around(identifier):
            for each in (*element.findall(f"{W3C}invoke"), *element.findall(f"{W3C}onentry/{W3C}send")):
                found[each.attrib["id"]] = element.attrib["id"]
        return found


def test_scxml_takes_the_transitions_of_the_machine(machine: Machine[Any]) -> None:
    assert agrees(machine, ids(machine), Document(machine).take) >= len(machine.states) - len(machine.detached) - 1


def test_scxml_is_well_formed_by_its_own_rules(machine: Machine[Any]) -> None:
    document = Document(machine)
    assert document.root.tag == f"{W3C}scxml"
    assert (document.root.get("version"), document.root.get("name")) == ("1.0", machine.name)
    given = [element.attrib["id"] for element in document.root.iter() if "id" in element.attrib]
    assert len(given) == len(set(given))
    assert {element.get("target") for element in document.root.iter(f"{W3C}transition")} - {None} <= set(
        document.states
    )
    assert {element.get("cond") for element in document.root.iter(f"{W3C}transition")} - {None} <= set(given)
    for element in document.states.values():
        inner = [each.attrib["id"] for each in element if each in document.states.values()]
        assert element.attrib["initial"] in inner if inner else "initial" not in element.attrib
        assert element.tag == f"{W3C}state" or not list(element)
        transitions = element.findall(f"{W3C}transition")
        last = {each.attrib["event"]: each for each in transitions}
        assert all("cond" in each.attrib or last[each.attrib["event"]] is each for each in transitions), "never taken"


def test_scxml_begins_where_the_machine_begins(machine: Machine[Any]) -> None:
    document = Document(machine)
    identifier = document.root.attrib["initial"]
    while "initial" in document.states[identifier].attrib:
        identifier = document.states[identifier].attrib["initial"]
    assert identifier == ids(machine)[machine.initial.state]
    assert {element.attrib["id"] for element in document.root.iter(f"{W3C}final")} == {
        ids(machine)[s] for s in machine.final
    }


def test_activities_and_timers_begin_and_end_as_the_kernel_derives(nested_machine: Machine[Any]) -> None:
    machine, document, id_of = nested_machine, Document(nested_machine), ids(nested_machine)
    spans = machine.spans.items()
    optional = {slot for slot, span in spans if isinstance(span.during, After) and span.during.is_optional}
    for record in reached(machine):
        for event in examples(machine):
            step = machine.step(record, event)
            if not isinstance(step, Step) or record.state in machine.final:
                continue
            before = document.going_on(id_of[record.state])
            now = document.going_on(id_of[step.record.state])
            begun = {effect.slot for effect in step.effects if isinstance(effect, Begin | StartTimer)}
            ended = {effect.slot for effect in step.effects if isinstance(effect, End | CancelTimer)}
            again = begun & set(before)
            assert set(now) - set(before) - optional == begun - again - optional
            # What is over by its own last event needs no end from the kernel; leaving the state does no harm.
            assert set(before) - set(now) - ended <= {
                slot for slot, last in machine.last.items() if type(event) in last
            }
            transition = document.transition(id_of[record.state], record, event)
            left: set[str] = set() if transition is None else document.left(id_of[record.state], transition)
            restarted_there = {slot for slot in set(before) & set(now) if before[slot] in left}
            assert restarted_there - optional == again - optional


def test_every_timer_sent_is_cancelled_in_the_same_state(machine: Machine[Any]) -> None:
    for element in Document(machine).states.values():
        sent = [each.attrib["id"] for each in element.findall(f"{W3C}onentry/{W3C}send")]
        assert sent == [each.attrib["sendid"] for each in element.findall(f"{W3C}onexit/{W3C}cancel")]


class Configuration:
    """An XState configuration, walked as XState does."""

    def __init__(self, machine: Machine[Any]) -> None:
        drawn = chart(machine)
        self.guards = drawn.guards
        self.delays = {timer.event: str(timer.delay) for node in walk(drawn.nodes) for timer in node.timers}
        self.root = json.loads(xstate(machine))
        self.paths: dict[str, list[dict[str, Any]]] = dict(self.descend(self.root, []))

    def descend(self, node: dict[str, Any], around: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for inner in node.get("states", {}).values():
            yield inner["id"], [inner, *around]
            yield from self.descend(inner, [inner, *around])

    def take(self, identifier: str, record: Record, event: Event) -> Taken:
        for node in self.paths[identifier]:
            name = name_of(type(event))
            for transition in node.get("after", {}).get(self.delays.get(name), node.get("on", {}).get(name, [])):
                if holds(self.guards, transition.get("guard"), record, event):
                    target = transition.get("target", f"#{identifier}").removeprefix("#")
                    return target, frozenset(transition.get("actions", []))
        return None


def test_xstate_takes_the_transitions_of_the_machine(machine: Machine[Any]) -> None:
    assert agrees(machine, ids(machine), Configuration(machine).take) >= len(machine.states) - len(machine.detached) - 1


def test_xstate_has_every_state_and_every_target(machine: Machine[Any]) -> None:
    configuration = Configuration(machine)
    leaves = {i for i, path in configuration.paths.items() if "states" not in path[0]}
    assert leaves == set(ids(machine).values())
    assert {i for i in leaves if configuration.paths[i][0].get("type") == "final"} == {
        ids(machine)[s] for s in machine.final
    }
    for path in configuration.paths.values():
        lists = [*path[0].get("on", {}).values(), *path[0].get("after", {}).values()]
        assert {t["target"][1:] for each in lists for t in each if "target" in t} <= set(configuration.paths)
        assert "states" not in path[0] or path[0]["initial"] in path[0]["states"]


def test_xstate_has_as_many_transitions_as_scxml(machine: Machine[Any]) -> None:
    nodes = [path[0] for path in Configuration(machine).paths.values()]
    lists = [each for node in nodes for each in (*node.get("on", {}).values(), *node.get("after", {}).values())]
    assert sum(map(len, lists)) == len(list(Document(machine).root.iter(f"{W3C}transition")))


def test_xstate_has_every_timer_and_activity(nested_machine: Machine[Any]) -> None:
    nodes = [path[0] for path in Configuration(nested_machine).paths.values()]
    invoked = [each for node in nodes for each in node.get("invoke", [])]
    expected = {slot for slot, span in nested_machine.spans.items() if not isinstance(span.during, After)}
    assert {each["src"] for each in invoked} - {"timer"} == expected
    events = [each["input"]["event"] for each in invoked if each["src"] == "timer"]
    timers = [span for span in nested_machine.spans.values() if isinstance(span.during, After)]
    assert events == [span.during.slot for span in timers if len(span.states) > 1]
    assert sum(len(node.get("after", {})) for node in nodes) == len(timers) - len(events)


def test_the_grace_of_a_session_is_a_named_delay() -> None:
    interrupting = Configuration(session.machine).paths["Interrupting"][0]
    assert interrupting["after"] == {"grace": [{"target": "#BuildingPrompt", "actions": ["ForceStopSession"]}]}
    assert Configuration(session.machine).paths["Spawning"][0]["meta"] == {"postpones": ["UrgentMessage"]}


def test_rows_of_any_state_stand_around_all_others() -> None:
    around = Configuration(session.machine).root["states"]["ANY"]
    assert list(around["on"]) == ["OperatorStop", "FatalError"]


@pytest.mark.parametrize("form", [scxml, xstate])
def test_a_fixed_delay_is_a_number(form: Callable[[Machine[Any]], str], awkward: Machine[Any]) -> None:
    assert '"1500' in form(awkward)


def restarted(state: session.State) -> Machine[Any]:
    """Return a session with a row that restarts the timers of a state."""
    again: Row[Any] = row(state, session.UrgentMessage, state, restart=True)
    return session.machine.with_rows(again)


@pytest.mark.parametrize("form", [scxml, xstate])
def test_a_row_that_restarts_timers_beside_an_activity_has_no_statechart_and_is_printed_in_the_table(
    form: Callable[[Machine[Any]], str],
) -> None:
    """A statechart would begin the activity again, too."""
    machine = restarted(session.State.INTERRUPTING)
    with pytest.raises(ValueError, match=r"row\(Interrupting, UrgentMessage, Interrupting, restart\) has no equal"):
        form(machine)
    (printed,) = [line for line in plain(machine).splitlines() if "timers again" in line]
    assert "Interrupting" in printed


def test_a_row_that_restarts_timers_alone_enters_its_state_again() -> None:
    """The entry begins the timers again."""
    machine = restarted(session.State.COOLING_DOWN)
    (again,) = [
        each
        for each in Document(machine).root.iter(f"{W3C}transition")
        if each.get("event") == "UrgentMessage" and each.get("target") == "CoolingDown"
    ]
    assert again.get("type", "external") == "external"
    (state, *_) = Configuration(machine).paths["CoolingDown"]
    assert state["on"]["UrgentMessage"] == [{"target": "#CoolingDown", "reenter": True}]
