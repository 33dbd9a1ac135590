"""A play by hand: a tree of worlds, its text as a test, and the widget that shows it."""

import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kiln
from lifefold.core.fleet.board import worker_slot
from lifefold.core.kernel import Envelope, Input, alone
from lifefold.core.lifecycles import session
from lifefold.interpreters.notebook.history import History
from lifefold.interpreters.notebook.play import Play
from lifefold.interpreters.notebook.play_picture import picture
from lifefold.interpreters.notebook.player import Player, play
from lifefold.interpreters.notebook.written_play import as_test

NUMBERS = st.lists(st.integers(0, 1_000), max_size=12)


def begun(subject: str) -> Play:
    return Play.of(session.machine) if subject == "session" else Play.of(kiln.system, kiln.opened(0, "a"))


def played(numbers: list[int], subject: str = "session") -> Play:
    """Give one enabled input for each number, as long as there are any."""
    now = begun(subject)
    for number in numbers:
        choices = now.choices()
        if choices:
            now = now.give(choices[number % len(choices)])
    return now


def must_pass(text: str) -> None:
    """Execute a written test."""
    space: dict[str, Any] = {}
    exec(compile(text, "played", "exec"), space)  # noqa: S102 - the text was written by this test
    next(value for name, value in space.items() if name.startswith("test_"))()


@pytest.mark.parametrize("subject", ["session", "kiln"])
@settings(max_examples=25, deadline=None)
@given(numbers=NUMBERS)
def test_back_returns_to_each_earlier_world_and_keeps_the_branch(subject: str, numbers: list[int]) -> None:
    now = played(numbers, subject)
    steps = now.path()
    again = now
    for length in reversed(range(len(steps))):
        again = again.back()
        assert again.path() == steps[:length]
        assert again.nodes == now.nodes
    assert again.world.aggregates == begun(subject).world.aggregates
    assert again.path() == ()
    assert again.back() == again


@settings(max_examples=25, deadline=None)
@given(numbers=NUMBERS)
def test_an_input_that_was_given_before_leads_to_its_branch(numbers: list[int]) -> None:
    now = played(numbers)
    for number in range(len(now.nodes)):
        step, before = now.nodes[number].step, now.at(number).back()
        if step is not None:
            assert before.give(step.given) == now.at(number)


@settings(max_examples=25, deadline=None)
@given(numbers=NUMBERS)
def test_another_input_is_another_branch_and_leaves_the_first_as_it_was(numbers: list[int]) -> None:
    now = played(numbers).at(0)
    for each in now.choices():
        after = now.give(each)
        assert after.nodes[: len(now.nodes)] == now.nodes
        assert after.path()[-1].given == each
        assert after.now in after.back().branches()


@pytest.mark.parametrize("subject", ["session", "kiln"])
@settings(max_examples=15, deadline=None)
@given(numbers=NUMBERS)
def test_a_play_as_a_test_passes(subject: str, numbers: list[int]) -> None:
    must_pass(as_test(played(numbers, subject)))


@pytest.fixture
def changed() -> Iterator[str]:
    """Return the source of a session without the activities of its first state."""
    module = ModuleType("changed_session")
    setattr(module, "machine", session.machine.with_rows(during={session.State.INITIALIZING: ()}))  # noqa: B010
    sys.modules["changed_session"] = module
    yield "changed_session:machine"
    del sys.modules["changed_session"]


def test_a_play_as_a_test_fails_for_a_changed_machine(changed: str) -> None:
    now = played([0, 0, 0])
    assert len(now.path()) == 3
    with pytest.raises(AssertionError):
        must_pass(as_test(now, source=changed))


def test_a_machine_is_imported_from_its_module_and_not_from_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook is the modules ``__main__`` and ``__mp_main__``, which a test cannot import."""
    notebook = ModuleType("__mp_main__")
    setattr(notebook, "machine", session.machine)  # noqa: B010
    monkeypatch.setitem(sys.modules, "__mp_main__", notebook)
    assert "from lifefold.core.lifecycles.session import machine" in as_test(played([0]))


def test_a_refused_input_is_an_error_and_changes_nothing() -> None:
    name = next(iter(alone(worker_slot.machine)[1]))
    now = Play.of(worker_slot.machine)
    with pytest.raises(ValueError, match="refuses SessionExited"):
        now.give(Input(name, Envelope(name, session.SessionExited(session.Success()), now.world.now_ms)))
    with pytest.raises(IndexError, match="there is no node 1; the last one is 0"):
        now.at(1)


def test_the_journal_has_one_event_for_each_transition() -> None:
    now = played([0, 1, 2, 3])
    transitions = [each for step in now.path() for each in step.reaction.transitions]
    assert [each.to_status for each in now.as_journal()] == [str(each.after.state) for each in transitions]
    assert transitions


def test_the_picture_and_the_text_mark_the_present_node_and_list_all_inputs() -> None:
    now = played([0, 1]).back()
    assert f"→ {now.now}." in " ".join(now.text().split())
    assert picture(now).startswith("<svg")
    assert picture(now) == picture(now.at(now.now))
    assert "enabled inputs" in picture(now)


def test_a_system_shows_its_messages_in_flight() -> None:
    now = begun("kiln").give(Input("kiln/a", Envelope("kiln", kiln.Lit(), 0)))
    assert now.messages() == ()
    now = now.give(next(each for each in now.choices() if isinstance(each.envelope.event, kiln.Fired)))
    assert now.messages()[0].startswith("kiln/a → tally")
    assert "messages in flight" in now.text()
    (arrival,) = (each for each in now.choices() if each.envelope.sender)
    assert now.give(arrival).messages() == now.messages()[1:]


def test_a_player_does_what_its_front_end_asks_for_and_nothing_for_a_number_that_is_not_there() -> None:
    player = play(session.machine)
    player.asked = ["give", 0, 1]
    assert player.play.now == 1
    player.asked = ["give", 10_000, 2]
    player.asked = ["at", 10_000, 3]
    assert player.play.now == 1
    player.asked = ["back", 0, 4]
    assert (player.play.now, player.shown["now"]) == (0, 0)
    player.asked = ["at", 1, 5]
    assert player.play.now == 1
    must_pass(player.as_test())
    assert player.as_journal() == player.play.as_journal()


def test_a_player_shows_its_play_as_a_test_until_something_else_is_played() -> None:
    player = play(session.machine)
    player.asked = ["test", 0, 1]
    assert player.shown["test"] == player.as_test()
    player.asked = ["give", 0, 2]
    assert player.shown["test"] == ""


def test_a_player_of_a_machine_lights_its_present_state() -> None:
    """The picture is laid out once; each world is the same picture with another box lit."""
    player = play(session.machine)
    seen: list[str] = []
    for number in (3, 2):
        lights = re.findall(r'class="box lit" data-key="([^"]+)"', player.shown["chart"])
        entities = [each for of in player.play.world.aggregates.values() for each in of.entities.values()]
        assert lights == [str(each.state) for each in entities]
        seen += lights
        player.give(number)
    assert len(set(seen)) == len(seen) == 2


def test_a_player_of_a_system_shows_what_was_played_as_a_sequence() -> None:
    player = Player(begun("kiln"))
    assert "signal" not in player.shown["chart"]
    player.give(Input("kiln/a", Envelope("kiln", kiln.Lit(), 0)))
    assert player.shown["chart"].count('class="signal"') == 1


def test_a_player_needs_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    player = play(session.machine)
    assert player.shown["chart"] == ""
    player.give(0)
    assert player.play.now == 1


def test_a_player_of_a_machine_without_a_module_says_what_its_test_needs() -> None:
    player = play(session.machine.with_rows())
    player.asked = ["test", 0, 1]
    assert "give its source=" in player.shown["test"]
    assert "player.as_test(source=" in player.shown["test"]


def test_a_player_without_a_front_end_is_a_picture_and_a_text() -> None:
    player = Player(Play.of(session.machine))
    data, _ = player._repr_mimebundle_()
    assert data["text/plain"] == player.play.text()
    assert data["image/svg+xml"] == picture(player.play)
    assert data["image/png"]


@settings(max_examples=25, deadline=None)
@given(numbers=NUMBERS, others=NUMBERS, share=st.floats(0, 1))
def test_a_fork_of_a_history_goes_on_from_its_world_and_leaves_it_alone(
    numbers: list[int], others: list[int], share: float
) -> None:
    """A fork after all inputs has the last world; the written test begins with the inputs before the fork."""
    before = played(numbers, "kiln")
    inputs = [*before.opening, *(step.given for step in before.path())]
    history = History(kiln.system, inputs)
    kept = len(history)
    assert Play.fork(history).world == before.world
    at = round(share * kept)
    fork = play(history, at=at).play
    assert fork.path() == ()
    assert fork.world.aggregates == {each.entry.stream: each.reaction.aggregate for each in history[:at]}
    for number in others:
        choices = fork.choices()
        fork = fork.give(choices[number % len(choices)]) if choices else fork
    assert len(history) == kept
    must_pass(as_test(fork, source="kiln:system"))


def test_a_fork_beyond_the_end_of_a_history_is_refused() -> None:
    history = History(kiln.system, kiln.opened(0, "a"))
    with pytest.raises(IndexError, match="there is no input 99"):
        play(history, at=99)
