"""Sequence diagrams: every input once, from its sender to its receiver, in each form of the diagram."""

import re
from collections import Counter
from typing import Final
from xml.etree import ElementTree as ET

import pytest

import kiln
from lifefold.core import fleet
from lifefold.core.kernel import Cause, Envelope, Input, SystemStep
from lifefold.core.lifecycles import session
from lifefold.interpreters.notebook import History, Play, draw
from lifefold.interpreters.notebook.displays import BUNDLES
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.simulate.story import steps
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.views.picture import Drawing, correspondence, sequence_svg, svg
from lifefold.interpreters.views.sequence import MOST, Sequence, mermaid_sequence, sequence
from lifefold.interpreters.views.wiring import wiring

SVG: Final = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", name="happened")
def steps_of_a_fleet() -> tuple[SystemStep, ...]:
    """What three agents do in a simulation with faults."""
    target = named("fleet")
    run = simulate(target.subject, opening=target.opening, environment=target.environment, seed=1)
    return tuple(steps(fleet.system, run.entries))


@pytest.fixture(scope="module", name="drawn")
def diagram_of_a_fleet(happened: tuple[SystemStep, ...]) -> Sequence:
    return sequence("fleet", happened, most=len(happened))


def test_every_input_is_an_arrow_from_its_sender(happened: tuple[SystemStep, ...], drawn: Sequence) -> None:
    """A message comes from an aggregate, a command from its operator, and all else from the aggregate itself."""
    assert len(drawn.signals) == len(happened)
    causes = {step.cause for step in happened}
    assert {Cause.MESSAGE, Cause.COMMAND, Cause.REPORT} <= causes
    for signal, step in zip(drawn.signals, happened, strict=True):
        own = {Cause.MESSAGE: step.envelope.sender, Cause.COMMAND: step.envelope.actor}
        assert (signal.sender, signal.receiver) == (own.get(step.cause, step.aggregate), step.aggregate)
        entered = [each for each in step.reaction.transitions if each.entered is not None]
        assert len(signal.moves) == (1 if step.reaction.refused else len(entered))


def test_the_mermaid_text_has_each_lane_arrow_and_transition(drawn: Sequence) -> None:
    text = mermaid_sequence(drawn)
    assert text.startswith("sequenceDiagram\n")
    lanes = re.findall(r"^    participant (p\d+) as (.+)$", text, re.MULTILINE)
    assert [name for _, name in lanes] == list(drawn.lanes)
    names = dict(lanes)
    arrows = re.findall(r"^    (p\d+)->>(p\d+): (\d+)\. ", text, re.MULTILINE)
    found = [(names[sender], names[receiver], int(number)) for sender, receiver, number in arrows]
    assert found == [(each.sender, each.receiver, each.number) for each in drawn.signals]
    assert text.count("Note over ") == sum(bool(each.moves) for each in drawn.signals)


def test_the_picture_has_each_arrow_with_its_whole_text(drawn: Sequence) -> None:
    """It is well formed, needs no library, and all that is cut off is under the pointer."""
    root = ET.fromstring(sequence_svg(drawn))  # noqa: S314 - the picture was drawn by this test
    signals = [each for each in root.iter(f"{SVG}g") if each.get("class") == "signal"]
    assert [(each.get("data-from"), each.get("data-to")) for each in signals] == [
        (each.sender, each.receiver) for each in drawn.signals
    ]
    assert [each.findtext(f"{SVG}title") for each in signals] == [each.line().strip() for each in drawn.signals]
    heights = [float(each.get("y", "0")) for each in root.iter(f"{SVG}text")]
    assert max(heights) <= float(root.get("height", "0"))


def test_a_long_run_is_cut_and_says_how_much_is_left_out(happened: tuple[SystemStep, ...]) -> None:
    short = sequence("fleet", happened)
    assert (len(short.signals), short.left_out) == (MOST, len(happened) - MOST)
    said = f"… {len(happened) - MOST:,} more inputs"
    assert short.text().endswith(said)
    assert said in sequence_svg(short)
    assert said in mermaid_sequence(short)
    assert "more input" not in mermaid_sequence(sequence("fleet", happened[:MOST]))


def test_nothing_that_has_happened_is_a_diagram_without_lanes() -> None:
    empty = sequence("nothing", ())
    assert empty.lanes == ()
    assert mermaid_sequence(empty) == "sequenceDiagram\n"
    ET.fromstring(sequence_svg(empty))  # noqa: S314 - as above


def test_a_play_and_a_history_of_the_same_inputs_are_the_same_diagram() -> None:
    """Messages are arrows between aggregates, at the moment of their arrival."""
    play = Play.of(kiln.system, kiln.opened()).give(Input("kiln/a", Envelope("kiln", kiln.Lit(), 0)))
    play = play.give(next(each for each in play.choices() if isinstance(each.envelope.event, kiln.Fired)))
    play = play.give(next(each for each in play.choices() if each.envelope.sender))
    drawn = draw(play)
    assert isinstance(drawn, Sequence)
    assert [(each.sender, each.receiver) for each in drawn.signals][-1] == ("kiln/a", "tally")
    inputs = [*play.opening, *(each.given for each in play.path())]
    history = draw(History(kiln.system, inputs))
    assert isinstance(history, Sequence)
    last = history.signals[len(play.opening) :]
    assert [each[2:] for each in last] == [each[2:] for each in drawn.signals]
    assert BUNDLES[Sequence](drawn)["text/plain"] == drawn.text()


def test_the_messages_of_a_system_are_those_of_its_wiring() -> None:
    """Each event that goes to another aggregate has an arrow between the machines; nothing else has one."""
    drawing = correspondence(fleet.system)
    assert drawing == draw(fleet.system)
    drawn = Counter((arrow.source, arrow.target, line) for arrow in drawing.arrows for line in arrow.lines)
    told = {
        (f"{wire.kind} {wire.rule.on}", f"{lead.kind} {lead.machine or f'a new {lead.kind}'}", lead.event)
        for wire in wiring(fleet.system)
        for lead in wire.leads
        if lead.kind != wire.kind
    }
    assert set(drawn) == told
    assert set(drawn.values()) == {1}
    assert svg(drawing).count('<g class="arrow"') == len(drawing.arrows)


def test_a_machine_is_drawn_as_its_states_and_a_value_without_a_drawing_is_an_error() -> None:
    assert isinstance(draw(session.machine), Drawing)
    with pytest.raises(TypeError, match="a int has no drawing"):
        draw(1)
