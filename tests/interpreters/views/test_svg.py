"""Pictures: everything is in them, nothing lies on anything else, and they are the same everywhere."""

import os
import re
import subprocess
import sys
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from lifefold.core.kernel import Machine
from lifefold.core.lifecycles import session
from lifefold.interpreters.views import UnknownNameError, draw, machines, systems
from lifefold.interpreters.views.outline import arcs
from lifefold.interpreters.views.picture import (
    Arrow,
    Box,
    Drawing,
    LayoutMissingError,
    Tint,
    lit,
    overview,
    statechart,
    svg,
)
from lifefold.interpreters.views.picture.layout import layout
from lifefold.interpreters.views.wiring import wiring

MACHINES: Final = machines()
DRAW: Final = """
from lifefold.core.lifecycles import session
from lifefold.interpreters.views.picture import statechart, svg
print(svg(statechart(session.machine)), end="")
"""


def parsed(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)  # noqa: S314 - we wrote it


@pytest.mark.parametrize("name", MACHINES)
def test_a_picture_has_every_state_and_every_row(name: str) -> None:
    """As well-formed XML that takes nothing from elsewhere."""
    machine: Machine[Any] = MACHINES[name]
    drawn = svg(statechart(machine))
    root = parsed(drawn)
    texts = {text for each in root.iter() if (text := (each.text or "").strip())}
    assert set(map(str, machine.states)) <= texts
    assert {arc.label for arc in arcs(machine)} <= texts
    assert not {each.tag.rpartition("}")[2] for each in root.iter()} - {
        "svg", "title", "rect", "circle", "text", "g", "path", "polygon",
    }  # fmt: skip
    assert not any("href" in name or name.startswith("on") for each in root.iter() for name in each.attrib)


@pytest.mark.parametrize("name", MACHINES)
def test_no_state_lies_on_another(name: str) -> None:
    """Whatever the machine, the boxes stand apart."""
    drawing = statechart(MACHINES[name])
    placed = layout(drawing)
    for one, other in combinations(drawing.every_box(), 2):
        (x, y), (to_x, to_y) = placed.boxes[one.key], placed.boxes[other.key]
        wide, high = (sum(sizes) / 2 for sizes in zip(one.size_pt(), other.size_pt(), strict=True))
        assert abs(x - to_x) >= wide or abs(y - to_y) >= high, (one.key, other.key)


def test_a_picture_is_the_same_whatever_fonts_there_are(tmp_path: Path) -> None:
    """Nothing in it was measured by a font."""
    (tmp_path / "fonts.conf").write_text("<fontconfig></fontconfig>")
    without = {**os.environ, "FONTCONFIG_FILE": str(tmp_path / "fonts.conf")}
    ran = subprocess.run((sys.executable, "-c", DRAW), env=without, capture_output=True, text=True, check=True)
    assert ran.stdout == svg(statechart(session.machine))


def test_a_state_and_the_arrows_that_were_crossed_are_marked() -> None:
    """A row from any state is marked where the state has none of its own."""
    state = session.State
    ways = [(state.RUNNING, state.INTERRUPTING), (state.COOLING_DOWN, state.STOPPED)]
    drawing = statechart(session.machine, at=state.STOPPED, crossed=ways, tint=Tint.WRONG)
    assert [box.key for box in drawing.every_box() if box.tint is Tint.WRONG] == ["Stopped"]
    marked = [(arrow.source, arrow.target) for arrow in drawing.arrows if arrow.tint is Tint.WRONG]
    assert sorted(marked) == [("(any)", "Stopped"), ("Running", "Interrupting")]


def test_a_state_is_lit_in_a_drawn_picture_as_in_one_that_is_drawn_anew() -> None:
    """Only its box changes; a state that is not in the picture changes nothing."""
    plain = svg(statechart(session.machine))
    here = lit(plain, session.State.RUNNING)
    assert here.replace('class="box lit"', 'class="box"') == svg(statechart(session.machine, at=session.State.RUNNING))
    assert here.count("box lit") == 1
    assert lit(plain, "Nowhere") == plain


def test_operator_text_is_escaped_in_a_picture() -> None:
    """Characters that mean something in SVG or in Graphviz's language are shown as they are."""
    words = '<b>&"\\N}'
    drawing = Drawing(words, (Box(words, (words, words), hint=words),), (Arrow(words, words, (words,)),))
    texts = [each.text for each in parsed(svg(drawing)).iter()]
    assert texts.count(words) == 5


def test_a_system_is_drawn_with_its_machines_and_rules() -> None:
    """A frame for each kind of aggregate, every machine inside, and an arrow for each wire of every rule."""
    system = systems()["fleet"]
    drawing = overview(system)
    assert [group.key for group in drawing.groups] == list(system.aggregates)
    for group, of in zip(drawing.groups, system.aggregates.values(), strict=True):
        assert {*of.machines} <= {box.lines[0] for box in group.boxes}
    drawn = {(arrow.source, arrow.target, line) for arrow in drawing.arrows for line in arrow.lines}
    wires = wiring(system)
    assert {wire.rule.name for wire in wires if not wire.leads} == set()
    for wire in wires:
        for lead in wire.leads:
            there = f"{lead.kind} {lead.machine or '(new)'}"
            assert (f"{wire.kind} {wire.rule.on}", there, wire.rule.name.replace("_", " ")) in drawn
    parsed(svg(drawing))


@pytest.mark.parametrize("form", ["mermaid", "dot"])
def test_a_system_has_the_same_arrows_in_every_language(form: str) -> None:
    """As many boxes, frames and arrows as in the drawing; messages are thick in each."""
    system = systems()["fleet"]
    drawing, text = overview(system), draw(system, form)
    arrow, thick, frame = ("-->", "==>", "subgraph") if form == "mermaid" else ("->", "penwidth", "subgraph")
    messages = sum(each.tint is Tint.HERE for each in drawing.arrows)
    found = len(re.findall(r"^    n\d+ (?:-->|==>|->)", text, re.MULTILINE))
    assert (found, text.count(thick), text.count(frame)) == (len(drawing.arrows), messages, len(drawing.groups))
    assert arrow in text
    assert all(f"n{number}" in text for number, _ in enumerate(drawing.every_box()))


def test_the_graph_of_a_system_is_read_by_graphviz() -> None:
    """Its names, labels and clusters are well formed."""
    drawing = overview(systems()["fleet"])
    graph = import_module("pygraphviz").AGraph(string=draw(systems()["fleet"], "dot"))
    assert (len(graph.nodes()), len(graph.subgraphs())) == (len(drawing.every_box()), len(drawing.groups))


def test_a_system_has_no_statechart_for_other_tools() -> None:
    """SCXML and XState are languages of machines; the error names the formats of systems."""
    with pytest.raises(UnknownNameError, match="known are mermaid, dot, svg"):
        draw(systems()["fleet"], "scxml")


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(LayoutMissingError, match=r"lifefold\[notebook\]"):
        svg(statechart(session.machine))
