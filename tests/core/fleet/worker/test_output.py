"""What the output of a session tells: each fact once, the last snapshot of its works, and nothing after its end."""

from typing import Any, Final

import pytest

from aggregate_hand import Hand
from declared import Mutants, instead, must_be_found, must_hold, rebuilt
from fleet_worker import cooling, exit_with, following, next_task, running, start
from lifefold.core.fleet.worker import conversation, output
from lifefold.core.fleet.worker.output import (
    ConversationSeen,
    Doing,
    LimitSeen,
    Output,
    PermissionDenied,
    PermissionWanted,
    Seen,
    SessionOver,
    SessionRuns,
    State,
    Work,
    WorkSeen,
    machine,
)
from lifefold.core.kernel import IllegalTransition, Machine, Record, Refusal, Step, replace, row
from lifefold.core.kernel.entity import Envelope
from lifefold.core.lifecycles import session, turn
from lifefold.effects import Begin, End, FollowOutput
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

BASH: Final = Doing(Work.TOOL, "Bash")
COMPACTION: Final = Doing(Work.COMPACTION)


def followed(account: str = "", **more: Record) -> Hand:
    """Return a worker whose session runs and is followed."""
    return start(next_task(following(account=account, more=more)))


def tell(of: Hand, fact: Seen) -> Hand:
    """Let the output tell a fact."""
    return of.report(output.REF, FollowOutput.__name__, fact)


def test_an_output_has_all_its_properties_and_uses_every_row() -> None:
    """In all of its states, with every guard used both ways."""
    assert must_hold(machine).missing == ()


def test_an_output_is_followed_from_the_start_of_its_session_to_its_end() -> None:
    """Not before it runs, and not when it has ended."""
    of = followed()
    assert "FollowOutput" in of.begun()
    assert of.state(output.REF) == "Followed"
    exit_with(of, session.Success())
    assert of.state(output.REF) == "Unfollowed"
    assert [e.slot for e in of.effects(End) if isinstance(e, End)] == ["FollowOutput"]


def test_a_worker_that_does_not_follow_has_no_output() -> None:
    """A fleet that does not ask for it is as it was."""
    assert output.REF not in running().aggregate.entities


def test_a_fact_that_was_reported_before_is_refused() -> None:
    """A restarted runner reads the output from its beginning."""
    of = tell(tell(followed(), ConversationSeen(3, "c-1")), WorkSeen(9, (BASH,), 1))
    part = of.part(output.REF, FollowOutput.__name__)
    for fact in (ConversationSeen(3, "c-1"), WorkSeen(9, (BASH,), 1), PermissionDenied(8, "1", "Bash")):
        again = Envelope(output.REF, fact, 0, "runner", slot=part.slot, generation=part.generation)
        assert isinstance(of.offer(again), Refusal)
    assert (of.record(output.REF).tools, of.record(output.REF).conversation) == (1, "c-1")


def test_a_restarted_runner_follows_the_output_with_the_position_that_it_had() -> None:
    """The activity is requested again, and the record has what is known."""
    of = tell(followed(), WorkSeen(9, (BASH,), 1)).crash()
    (begun,) = [e for e in of.effects(Begin) if isinstance(e, Begin) and isinstance(e.activity, FollowOutput)]
    assert begun.resumed
    assert of.record(output.REF).position == 9


def test_the_next_session_begins_with_an_output_of_its_own() -> None:
    """Positions of the session before mean nothing in it."""
    of = exit_with(tell(followed(), WorkSeen(9, (BASH,), 1)), session.Error("exit status 1"))
    of.confirm(output.REF, FollowOutput.__name__).elapse("session", "BackoffElapsed")
    start(next_task(of))
    assert of.record(output.REF) == Output(State.FOLLOWED)
    assert tell(of, WorkSeen(1, (BASH,), 1)).record(output.REF).tools == 1


def test_a_permission_is_wanted_until_it_is_denied_or_the_agent_works_again() -> None:
    """A session that is over waits for nothing, either."""
    wanted = PermissionWanted(1, "1", "Bash", "may I?")
    assert tell(followed(), wanted).record(output.REF).wanted == "Bash"
    denied = tell(tell(followed(), wanted), PermissionDenied(2, "1", "Bash", "no")).record(output.REF)
    assert (denied.wanted, denied.denied) == ("", "Bash")
    assert tell(tell(followed(), wanted), WorkSeen(2, (BASH,), 1)).record(output.REF).wanted == ""
    assert exit_with(tell(followed(), wanted), session.Success()).record(output.REF).wanted == ""


def test_a_limit_is_handed_on_and_changes_no_work() -> None:
    """The session receives the event, and decides about limits."""
    of = tell(tell(followed(), WorkSeen(1, (BASH,), 1)), LimitSeen(2, 5_000, "five_hour", "limit reached"))
    assert (of.record(output.REF).position, of.record(output.REF).works) == (2, (BASH,))


@pytest.mark.parametrize(
    ("works", "phase"),
    [
        ((), turn.State.RUNNING),
        ((BASH,), turn.State.TOOL_USE),
        ((COMPACTION,), turn.State.COMPACTING),
        ((BASH, COMPACTION), turn.State.COMPACTING),
    ],
)
def test_the_works_say_the_phase(works: tuple[Doing, ...], phase: turn.State) -> None:
    """A compaction comes before a tool, because the document has no way between the two."""
    assert Output(State.FOLLOWED, works=works).phase is phase


def test_the_examples_are_accepted_where_their_positions_say() -> None:
    """A search sees old facts, too."""
    record = Output(State.FOLLOWED, position=4, steers=True)
    for kind in output.FACTS:
        accepted = [not isinstance(machine.step(record, each), IllegalTransition) for each in kind.examples_for(record)]
        assert set(accepted) == {True, False}


def _with(new: Any, when: Any = None) -> Machine[Any]:
    return instead(machine, new, when)


def _any(o: Output, e: Seen) -> bool:
    """Take old facts, too."""
    del o, e
    return True


def _uncounted(o: Output, e: WorkSeen) -> Step[Output, Any]:
    return Step(replace(o, position=e.position, works=e.works))


def _unchanged(o: Output, e: WorkSeen) -> Step[Output, Any]:
    return Step(replace(o, position=e.position, tools=o.tools + e.tools, condensed=o.condensed + e.compactions))


def _left_at_work(o: Output, _e: SessionOver) -> Step[Output, Any]:
    return Step(o)


def _never(o: Output, e: SessionRuns) -> bool:
    """Follow no session."""
    del o, e
    return False


def _is_at_work(o: Output, _e: SessionOver) -> bool:
    return bool(o.works)


FOLLOWED: Final = State.FOLLOWED

MUTANTS: Final[Mutants] = {
    "a fact counts twice": (
        "counts once",
        lambda: _with(row(FOLLOWED, WorkSeen, FOLLOWED, output.see_work, when=_any)),
    ),
    "tools are not counted": (
        "last snapshot",
        lambda: _with(row(FOLLOWED, WorkSeen, FOLLOWED, _uncounted, when=output.is_news)),
    ),
    "the works stay as they were": (
        "last snapshot",
        lambda: _with(row(FOLLOWED, WorkSeen, FOLLOWED, _unchanged, when=output.is_news)),
    ),
    "a session that is over is at work": (
        "a session that is over does nothing",
        lambda: _with(row(FOLLOWED, SessionOver, State.UNFOLLOWED, _left_at_work)),
    ),
    "an output stays followed": (
        "begin and end the reading",
        lambda: machine.with_rows(row(FOLLOWED, SessionOver, FOLLOWED, output.end, when=_is_at_work)),
    ),
    "no session is followed": (
        "are accepted",
        lambda: _with(row(State.UNFOLLOWED, SessionRuns, FOLLOWED, output.begin, when=_never)),
    ),
    "nothing reads the output": ("FollowOutput runs in", lambda: rebuilt(machine, during={})),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_in_the_reading_breaks_a_property(name: str) -> None:
    """A row that is lost, or is another one, is found."""
    must_be_found(MUTANTS[name])


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["keep_following", "stop_following"])
def test_a_rule_that_is_lost_breaks_a_property(name: str) -> None:
    """Without it a running session is not followed, or one that is over is."""
    lost = without(name)
    report = check(lost, opening=named("fleet-turns").opening, bounds=Bounds(states=2_000, compared=0))
    assert "the output of a session is followed exactly" in str([each.name for each in report.broken()])


def test_without_an_output_a_session_goes_its_way() -> None:
    """The rule asks for nothing."""
    assert cooling().state("session") == "CoolingDown"


@pytest.mark.parametrize(("account", "state"), [("one", session.State.INTERRUPTING), ("", session.State.RUNNING)])
def test_a_session_that_shows_a_limit_of_its_account_is_interrupted(account: str, state: session.State) -> None:
    """Some programs wait silently for the end of a limit. Without an account no agent can rest."""
    of = tell(followed(account), LimitSeen(9, 60_000, "five_hour", "out of quota"))
    assert of.record("session").state is state


def test_the_name_that_a_running_program_gives_its_conversation_is_kept() -> None:
    """So the next session resumes it, also if this one is killed."""
    of = followed(conversation=conversation.Conversation(resumes=True))
    tell(of, ConversationSeen(9, "c7"))
    kept = of.record(conversation.REF)
    assert (kept.id, kept.is_begun) == ("c7", True)
