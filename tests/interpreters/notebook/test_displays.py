"""The displays of a notebook: the states, the trace of a finding, the log and its forks."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import anyio
import pytest
from IPython.core.formatters import DisplayFormatter

from embedded_drawings import drawings
from lifefold.core import fleet
from lifefold.core.fleet.system import board
from lifefold.core.kernel import (
    Cause,
    Envelope,
    Event,
    Machine,
    Property,
    Record,
    State,
    SystemStep,
    after,
    eventually,
    leads_to,
    replace,
    row,
)
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import SessionExited, Success
from lifefold.interpreters.campaign.report import trial
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.notebook import (
    BUNDLES,
    History,
    TooManyError,
    charts,
    draw,
    load_ipython_extension,
    moves,
    state_space,
    unload_ipython_extension,
    way,
)
from lifefold.interpreters.notebook.play import Play
from lifefold.interpreters.notebook.scrubber import Scrubber
from lifefold.interpreters.report.trace import Trace
from lifefold.interpreters.search.report import Report
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.store import Batch, MemoryStore
from lifefold.interpreters.targets.simulation_targets import target
from lifefold.interpreters.views import machines
from lifefold.interpreters.views.picture import Tint, statechart

A_RUN: Final = Path(__file__).parents[3] / "notebooks" / "a-run.jsonl"
UNCOMPARED: Final = Bounds(compared=0)
"""What is shown here is what a check has found, and not how it was held against the rules."""

PATIENT: Final = session.machine.with_rows(during={session.State.INTERRUPTING: ()})


class Light(State):
    OFF = "Off"
    RED = "Red"
    GREEN = "Green"


class Stops(Event, frozen=True): ...


class Goes(Event, frozen=True): ...


class Lamp(Record, frozen=True):
    state: Light = Light.OFF


LEFT_ON: Final = Machine(
    "lamp",
    Lamp(),
    rows=(row(Light.OFF, Goes, Light.GREEN), row(Light.GREEN, Stops, Light.RED), row(Light.RED, Stops, Light.OFF)),
    properties=(leads_to("it goes out", lambda e: e.state is Light.GREEN, lambda e: e.state is Light.OFF),),
)
"""It need not be switched off."""


@pytest.fixture(scope="module")
def history() -> History:
    """Return what three agents have really done."""
    return History.read(fleet.system, A_RUN.read_text())


@pytest.fixture(scope="module")
def report() -> Report:
    """Return what is wrong without the timer of an interrupted session."""
    return check(PATIENT, bounds=UNCOMPARED)


@pytest.fixture
def shell() -> SimpleNamespace:
    """Return what the extension needs of a shell."""
    return SimpleNamespace(display_formatter=DisplayFormatter())


def test_every_type_is_shown_as_text_and_as_more(shell: Any, history: History, report: Report) -> None:
    """A front end that has no pictures shows the text, which never names an address in memory."""
    load_ipython_extension(shell)
    worker_slot = machines()["worker_slot"]
    trace = report.broken()[0].trace
    assert trace is not None
    tried = trial(target(LEFT_ON), range(30), stop_at=1)
    run = simulate(worker_slot, seed=1)
    figure = charts.times("so long", {"each": [1_000]})
    checked = (worker_slot, fleet.system, trace, statechart(worker_slot), state_space(worker_slot), report, history)
    played = (Play.of(worker_slot), draw(Play.of(worker_slot)))
    shown = (*checked, *played, run, tried, tried.findings[0], figure)
    assert {type(each) for each in shown} == set(BUNDLES)
    for each in shown:
        data, _ = shell.display_formatter.format(each)
        assert data["text/plain"].strip()
        assert " at 0x" not in data["text/plain"]
        assert data.keys() in ({"text/plain", "image/svg+xml", "image/png"}, {"text/plain", "text/html"})
        assert "<svg" not in data.get("text/html", "")


def test_an_extension_that_is_unloaded_leaves_nothing(shell: Any) -> None:
    """Afterwards a machine is shown as any object is."""
    load_ipython_extension(shell)
    unload_ipython_extension(shell)
    data, _ = shell.display_formatter.format(session.machine)
    assert data.keys() == {"text/plain"}


def test_without_the_library_there_is_the_text(shell: Any, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that cannot be laid out is left away, and nothing fails."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    load_ipython_extension(shell)
    assert shell.display_formatter.format(session.machine)[0].keys() == {"text/plain"}
    assert drawings(shell.display_formatter.format(report)[0]["text/html"]) == []
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert shell.display_formatter.format(charts.times("so long", {}))[0].keys() == {"text/plain"}


def test_a_report_shows_the_way_as_a_picture(shell: Any, report: Report) -> None:
    """One for every broken property that has a way, beside the same report in words."""
    load_ipython_extension(shell)
    data, _ = shell.display_formatter.format(report)
    assert data["text/plain"] == str(report)
    assert len(drawings(data["text/html"])) == len(report.broken()) == 2


@pytest.mark.parametrize("name", ["worker_slot", "task", "desired_state"])
def test_a_state_space_is_what_the_checker_has_looked_at(name: str) -> None:
    """The same states, and a picture with a dot for each."""
    machine = machines()[name]
    space = state_space(machine)
    assert len(space.states) == check(machine).states
    drawing = space.drawing(wrong=lambda entity: entity.state in machine.final)
    assert len(drawing.boxes) == len(space.states)
    wrong = [box for box in drawing.boxes if box.tint is Tint.WRONG]
    assert len(wrong) == sum(entity.state in machine.final for entity in space.states)


def test_a_state_space_that_is_too_large_is_refused() -> None:
    """Rather than drawn too small to read."""
    with pytest.raises(TooManyError, match="session can reach more than 100 states"):
        state_space(session.machine, most=100)


def test_a_way_has_every_move_and_ends_where_nothing_happens(report: Report) -> None:
    """Each step stands at its arrow, by its number; what waits moves nothing."""
    trace = next(each.trace for each in report.broken() if each.name == "Interrupting does not last for ever")
    assert trace is not None
    drawing = way(trace)
    assert [line for arrow in drawing.arrows for line in arrow.lines] == [
        "1. WorktreeReady",
        "2. PromptReady",
        "4. SessionStarted",
        "4. SessionStarted",
    ]
    assert [box.lines[0] for box in drawing.boxes if box.tint is Tint.WRONG] == [
        "Interrupting",
        "nothing happens any more",
    ]


def test_a_way_that_goes_on_for_ever_is_marked_where_it_does() -> None:
    """What comes before is not."""
    machine = Machine(
        "light",
        Lamp(),
        rows=(
            row(Light.OFF, Stops, Light.RED),
            row(Light.RED, Goes, Light.GREEN),
            row(Light.GREEN, Stops, Light.RED),
        ),
        during={(Light.OFF, Light.GREEN): after(1_000, Stops), Light.RED: after(1_000, Goes)},
        properties=(eventually("it is off for ever", lambda entity: entity.version < 0),),
    )
    trace = check(machine).broken()[0].trace
    assert trace is not None
    marked = {(arrow.source, arrow.target): arrow.tint is Tint.WRONG for arrow in way(trace).arrows}
    assert marked == {
        ("light Off", "light Red"): False,
        ("light Red", "light Green"): True,
        ("light Green", "light Red"): True,
    }


def test_a_way_on_which_nothing_moves_shows_the_beginning() -> None:
    """An activity that never ends is a way of no steps."""
    broken: Property[Any] = eventually("it is stopped", lambda entity: entity.state is session.State.STOPPED)
    trace = check(session.machine, properties=(broken,), bounds=UNCOMPARED).broken()[0].trace
    assert trace is not None
    assert [box.lines[0] for box in way(trace).boxes] == ["Initializing", "nothing happens any more"]


def test_a_move_names_the_operator_or_the_sender_of_its_input(history: History) -> None:
    """Every other input is known by its event alone."""
    found: set[Cause] = set()
    for step in history.steps():
        of = [each for each in moves([step]) if not each.said.startswith("→ ")]
        sender = {Cause.COMMAND: "operator: ", Cause.MESSAGE: f"{step.envelope.sender}: "}.get(step.cause, "")
        assert all(each.said.startswith(sender) for each in of)
        assert sender or not any(": " in each.said for each in of)
        found |= {step.cause for _ in of}
    assert {Cause.COMMAND, Cause.MESSAGE} < found


def test_a_log_folds_to_what_it_was(history: History) -> None:
    """The same entries by whichever way they are read, and a fork has the states of its moment."""

    async def kept() -> History:
        store = MemoryStore()
        await store.append(Batch([each.entry for each in history]))
        return History.of(fleet.system, await store.read())

    assert [each.entry for each in anyio.run(kept)] == [each.entry for each in history]
    for inputs in (0, 1, len(history) // 2, len(history)):
        last = {each.entry.stream: each.reaction.aggregate for each in history[:inputs]}
        assert history.fork(inputs).aggregates == last


def test_a_message_that_is_refused_is_seen(history: History) -> None:
    """It is in the log, and changed nothing: it stands there with the reason, and so it does in the way of a check."""
    sent = next(each.envelope for each in history if each.envelope.sender and each.entry.stream == board.NAME)
    number = history.fork(len(history)).aggregates[board.NAME].received[sent.sender] + 1
    again = replace(sent, ordinal=number, at_ms=history[-1].envelope.at_ms)
    twice = history.instead(len(history), (board.NAME, again))
    assert twice[-1].reaction.refused is not None
    last = twice.stops()[-1]
    assert (last.before, last.words) == (last.after, f"{name_of(sent)}, refused: {twice[-1].reaction.refused.reason}")
    happened = SystemStep(board.NAME, again, twice[-1].reaction)
    (line,) = [line for arrow in way(Trace((happened,))).arrows for line in arrow.lines]
    assert line == f"1. {sent.sender}: {name_of(sent)}, refused"
    told = " ".join(" ".join(Trace((happened,)).lines()).split())
    assert f"refused: {twice[-1].reaction.refused.reason}" in told


def name_of(envelope: Envelope) -> str:
    return type(envelope.event).__name__


def test_a_fork_changes_nothing_of_the_log(history: History) -> None:
    """Its decisions change no other log."""
    worker = history.fork(31).aggregates["worker/agent-1"]
    running = worker.entities["session"].find("RunSession")
    assert running is not None
    fork: Ledger = history.fork(31)
    exited = Envelope(
        "session", SessionExited(Success()), fork.last_ms, "RunSession", "", "RunSession", running.generation
    )
    assert isinstance(fork.decide("worker/agent-1", exited), Decision)
    other = history.instead(31, ("worker/agent-1", exited))
    assert other.stops("worker/agent-1", "session")[-1].after is session.State.SESSION_COMPLETE
    assert history.fork(31).aggregates["worker/agent-1"] == worker
    with pytest.raises(ValueError, match="worker/agent-1 refuses SessionExited"):
        other.instead(32, ("worker/agent-1", exited))


def test_a_scrubber_keeps_to_its_stops_and_shows_one_without_a_widget(history: History) -> None:
    """The slider's end is the last stop; a front end without widgets has the picture and the words of that moment."""
    stops = history.stops("worker/agent-1", "session")
    scrubber = Scrubber(session.machine, stops, now=3)
    assert scrubber.here() == stops[3]
    scrubber.now = 10_000
    assert scrubber.here() == stops[-1]
    data, _ = scrubber._repr_mimebundle_()
    assert data["text/plain"] == stops[-1].line()
    assert data["image/svg+xml"].startswith("<svg")
    with pytest.raises(ValueError, match="there is no transition"):
        Scrubber(session.machine, ())
