"""A picture shows every row of the table once, every state, and what goes on in it."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from lifefold.core.kernel import Machine, State
from lifefold.core.lifecycles import session
from lifefold.interpreters.views import FORMATS, UnknownNameError, dot, draw, mermaid
from lifefold.interpreters.views.outline import ANY_STATE, Names, Region, arcs, regions

Drawn = Counter[tuple[str, str, str]]

ENTITIES = {"#35;": "#", "#58;": ":", "#59;": ";", "#lt;": "<", "#gt;": ">", "#quot;": '"', "#37;": "%"}


def rows_of(machine: Machine[Any]) -> Drawn:
    """Return what has to be drawn: source, target and event of each row, by the states' full names."""
    return Counter(
        (source, source if row.target is None else str(row.target), row.event_label)
        for row in machine.rows
        for source in ([ANY_STATE] if row.sources is None else map(str, row.sources))
    )


def readable(text: str) -> str:
    for entity, character in ENTITIES.items():
        text = text.replace(entity, character)
    return text


def event_of(label: str) -> str:
    """Return the event of an inscription, without its condition and its effects."""
    return re.sub(r"( \[[^\[]*\])?( / [\w, ()]+)?$", "", label)


def mermaid_titles(text: str) -> dict[str, str]:
    """Return the titles of the states by their ids: the first description of each."""
    titles: dict[str, str] = {}
    for identifier, title in re.findall(r"^ +(\w+) : (.*)$", text, re.MULTILINE):
        titles.setdefault(identifier, readable(title))
    return titles | {i: title for title, i in re.findall(r'state "([^"]*)" as (\w+)$', text, re.MULTILINE)}


def test_mermaid_has_every_row_once(machine: Machine[Any]) -> None:
    text = mermaid(machine)
    titles = mermaid_titles(text)
    drawn = Counter(
        (titles[source], titles[target], event_of(readable(label)))
        for source, target, labels in re.findall(r"^ +(\w+) --> (\w+) : (.*)$", text, re.MULTILINE)
        for label in labels.split("<br/>")
    )
    assert drawn == rows_of(machine)


def test_mermaid_marks_the_beginning_and_the_ends(machine: Machine[Any]) -> None:
    text = mermaid(machine)
    titles = mermaid_titles(text)
    assert text.startswith("stateDiagram-v2\n")
    assert [titles[i] for i in re.findall(r"\[\*\] --> (\w+)", text)] == [machine.initial.state]
    assert {titles[i] for i in re.findall(r"(\w+) --> \[\*\]", text)} == set(machine.final)


def test_mermaid_labels_have_no_character_that_would_end_them(machine: Machine[Any]) -> None:
    for line in mermaid(machine).splitlines():
        label = line.partition(" : ")[2].replace("<br/>", "")
        assert not re.search(r'[:;<>"%]', re.sub(r"#\w+;", "", label)), line


def test_dot_has_every_row_once(machine: Machine[Any]) -> None:
    text = dot(machine)
    titles = {"ANY": ANY_STATE} | {
        identifier: re.sub("&(lt|gt|quot|amp);", lambda m: {"lt": "<", "gt": ">", "quot": '"', "amp": "&"}[m[1]], title)
        for identifier, title in re.findall(r"^ +(\w+) \[label=<<b>(.*?)</b>", text, re.MULTILINE)
    }
    drawn = Counter(
        (titles[source], titles[target], event_of(label))
        for source, target, labels in re.findall(r'^ +(\w+) -> (\w+) \[label="(.*)"\]$', text, re.MULTILINE)
        for label in labels.removesuffix("\\l").split("\\l")
    )
    assert drawn == rows_of(machine)
    assert set(titles.values()) - {ANY_STATE} == set(machine.states)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed, so that nothing can draw DOT")
def test_graphviz_draws_it(machine: Machine[Any]) -> None:
    done = subprocess.run(["dot", "-Tsvg"], input=dot(machine), capture_output=True, text=True, check=False)  # noqa: S607
    assert (done.returncode, done.stderr) == (0, "")
    kinds = Counter(group.get("class") for group in ET.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}g"))  # noqa: S314
    arrows = {(arc.source, arc.target) for arc in arcs(machine)}
    any_state = any(row.sources is None for row in machine.rows)
    assert kinds["edge"] == len(arrows) + 1
    assert kinds["node"] == len(machine.states) + 1 + any_state


def test_conditions_and_effects_are_inscribed() -> None:
    labels = {arc.label for arc in arcs(session.machine)}
    assert "SessionExited(Error) [threshold reached] / LogFatal" in labels
    assert "OperatorStop [otherwise]" in labels
    assert "UrgentMessage / CancelSession" in labels


def test_variants_of_an_event_are_no_alternatives(endless: Machine[Any]) -> None:
    (arc,) = [arc for arc in arcs(endless) if arc.row.event_label == "Poked(soft)"]
    assert arc.condition == ""


@pytest.mark.parametrize("render", [mermaid, dot])
def test_goings_on_are_shown(render: Callable[[Machine[Any]], str]) -> None:
    text = render(session.machine).replace("#58;", ":")
    for line in ("does RunSession", "does PrepareWorktree", "after grace: GraceExceeded", "postpones UrgentMessage"):
        assert text.count(line) == 1, line


def test_an_activity_of_several_states_is_drawn_around_them() -> None:
    (region,) = [each for each in regions(session.machine) if each.parts]
    assert region.states == session.SESSION_LIVES
    assert region.title == "RunSession"
    assert [part.title for part in region.parts] == ["Spawning", "Running", "Interrupting"]


def test_every_state_is_in_one_region_whatever_overlaps(machine: Machine[Any]) -> None:
    def leaves(parts: Iterable[Region]) -> list[State]:
        return [state for part in parts for state in (leaves(part.parts) if part.parts else part.states)]

    assert sorted(leaves(regions(machine))) == sorted(machine.states)


def test_names_are_identifiers_and_never_shared() -> None:
    names = Names("a b")
    assert [names.of(1, "a b"), names.of(2, "a:b"), names.of(3, "1st"), names.of(4, "<>"), names.of(1, "other")] == [
        "a_b_2", "a_b_3", "_1st", "x", "a_b_2",
    ]  # fmt: skip
    assert names["a b"] == "a_b"


def test_names_avoid_the_keywords_of_a_language() -> None:
    names = Names("Node", "node_2", keywords=frozenset({"node"}))
    assert (names["Node"], names["node_2"]) == ("Node_2", "node_2")


def test_the_same_machine_gives_the_same_text(machine: Machine[Any]) -> None:
    for form, render in FORMATS.items():
        assert draw(machine, form) == render(machine) == draw(machine, form)


def test_an_unknown_format_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="unknown format 'mermade'; did you mean 'mermaid'"):
        draw(session.machine, "mermade")
