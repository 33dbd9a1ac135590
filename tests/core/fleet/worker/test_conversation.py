"""The conversation of a worker: chosen before its session, resumed by the next one, and charged once."""

from collections.abc import Callable
from functools import reduce
from typing import Any, Final
from uuid import UUID, uuid5

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregate_hand import Hand
from declared import Mutants, instead, must_break, must_hold
from fleet_worker import prompt_of, start, states
from lifefold.core.fleet import AgentPlan, Plan, Talks, TaskPlan, opening, system
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.board.claim_token import token_of
from lifefold.core.fleet.worker import assignment, conversation, conversations, desired_state, mailbox, usage_meter
from lifefold.core.fleet.worker.conversation import identifier
from lifefold.core.fleet.worker.conversation_charges import charge
from lifefold.core.fleet.worker.conversation_model import (
    Began,
    ClaimBegan,
    Conversation,
    IdChosen,
    SessionEnded,
    State,
)
from lifefold.core.fleet.worker.prompt import ANEW, CONTINUED
from lifefold.core.kernel import STAY, Event, Machine, Projection, Record, Step, replace, row
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import KeptConversation
from lifefold.core.policy.outcomes import DIAGNOSES, Outcome
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

CLAUDE: Final = Talks(chooses=True, resumes=True)
CODEX: Final = Talks(chooses=False, resumes=True)
FORGETFUL: Final = Talks(chooses=True, resumes=False)

TOKEN: Final = token_of("k" * 64, "T1", 2)
LOST: Final = session.Error("no conversation found", DIAGNOSES[Outcome.CONVERSATION_LOST])


def opened(talks: Talks | None, *, metered: bool = False) -> Hand:
    """Return a worker that waits for work, with a conversation if its program keeps any."""
    records: dict[str, Record] = {
        "desired_state": desired_state.DesiredState(),
        "mailbox": mailbox.Mailbox(),
        "assignment": assignment.Assignment(),
        "session": session_profiles.SupervisedSession(name="ann", talks=talks is not None),
    }
    if talks is not None:
        records[conversation.REF] = Conversation(chooses=talks.chooses, resumes=talks.resumes)
    if metered:
        records[usage_meter.REF] = usage_meter.UsageMeter()
    return Hand("worker/ann", records).report("session", "PrepareWorktree", session.WorktreeReady())


def spawning(talks: Talks, kept: KeptConversation | None = None, *, metered: bool = False) -> Hand:
    """Return a worker that is spawning the first session of a claim; ``kept`` came with the claim."""
    share = Amounts(microusd=1_000, sessions=1) if metered else Amounts()
    brief = task.Brief("T1", 2, "do it", (("true",),), token=TOKEN, share=share)
    of = opened(talks, metered=metered).hear("board", "assignment", assignment.Assigned(brief, kept))
    return of.report("assignment", "CheckOutWork", assignment.CheckedOut())


def running(talks: Talks, kept: KeptConversation | None = None, *, metered: bool = False) -> Hand:
    """Return a worker whose first session of a claim runs."""
    return start(spawning(talks, kept, metered=metered))


def end(
    of: Hand, outcome: Any = None, usage: Usage | None = None, name: str = "", *, is_total: bool = True, **more: Any
) -> Hand:
    """Let the session end, with what it reports."""
    exited = session.SessionExited(outcome or session.Success(), usage or Usage(), name, is_total, **more)
    return of.report("session", "RunSession", exited)


def interrupt(of: Hand) -> Hand:
    """Let an urgent message arrive; the session is to end."""
    return of.give("mailbox", mailbox.OperatorMessageArrived("look"))


def talk(of: Hand) -> Conversation:
    """Return the conversation."""
    record: Conversation = of.record(conversation.REF)
    return record


def kept(of: Hand) -> list[tuple[int, KeptConversation | None]]:
    """Return what the last reaction tells the board of conversations, with the claim."""
    return [(e.epoch, e.conversation) for _, _, e in of.told() if isinstance(e, fleet_task.ConversationKept)]


# The identifier


def test_an_identifier_is_a_uuid_of_the_claim() -> None:
    """Version 5, in the namespace of the claim's token."""
    found = identifier(TOKEN, "T1", 2, "ann", 1)
    assert UUID(found) == uuid5(UUID(TOKEN), "T1 2 ann 1")
    assert UUID(found).version == 5
    assert UUID(identifier("", "T1", 2, "ann", 1)) == uuid5(UUID(int=0), "T1 2 ann 1")


CLAIMS = st.tuples(
    st.sampled_from([TOKEN, token_of("l" * 64, "T1", 2)]),
    st.sampled_from(["T1", "T1+1"]),
    st.integers(0, 30),
    st.sampled_from(["ann", "ben"]),
    st.integers(0, 30),
)


@given(CLAIMS, CLAIMS)
def test_no_two_conversations_have_the_same_identifier(one: Any, other: Any) -> None:
    """Neither of one log, nor of one claim."""
    assert (identifier(*one) == identifier(*other)) is (one == other)


def test_an_identifier_is_chosen_before_the_session_begins() -> None:
    """It is in the same entry of the log as the request for the session."""
    of = spawning(CLAUDE)
    assert prompt_of(of) == "do it"
    assert (talk(of).id, talk(of).is_begun) == (identifier(TOKEN, "T1", 2, "ann", 1), False)


def test_a_program_that_chooses_itself_gets_no_identifier() -> None:
    """It names its conversation, while its session runs or at the end of that."""
    assert (talk(spawning(CODEX)).id, talk(spawning(CODEX)).is_begun) == ("", False)
    of = running(CODEX).give(conversation.REF, Began("thread-1"), "rule")
    assert (talk(of).id, talk(of).is_begun) == ("thread-1", True)
    assert talk(end(interrupt(running(CODEX)), name="thread-1")).id == "thread-1"


def test_a_name_that_comes_again_changes_nothing() -> None:
    """A runner that has come back reads the output from its beginning."""
    of = running(CODEX).give(conversation.REF, Began("thread-1"), "rule")
    before = talk(of)
    of.give(conversation.REF, Began("thread-1"), "rule")
    assert (talk(of), kept(of)) == (before, [])


def test_an_identifier_that_no_session_has_named_is_not_used_again() -> None:
    """The program may have taken it before it was killed."""
    of = end(interrupt(running(CLAUDE)))
    assert states(of) == ("Spawning", "Working")
    assert talk(of).id == identifier(TOKEN, "T1", 2, "ann", 2)


def test_a_worker_without_conversations_has_none() -> None:
    """Its sessions are charged as they report."""
    of = opened(None).aggregate
    assert conversations.of(of) is None
    assert conversations.charged(of, session.SessionExited(session.Success(), Usage(7), "x", is_total=True)) == Usage(7)


# Resuming


@pytest.mark.parametrize("talks", [CLAUDE, CODEX], ids=["chosen", "named"])
def test_the_next_session_of_a_claim_resumes_its_conversation(talks: Talks) -> None:
    """After an urgent message, a pause, or a suspension."""
    of = end(interrupt(running(talks)), name="C1")
    assert (talk(of).id, talk(of).is_begun) == ("C1", True)
    start(of).give("desired_state", desired_state.PauseWanted("lunch"))
    end(of, name="C1").give("desired_state", desired_state.ResumeWanted())
    assert (states(of), talk(of).id) == (("Spawning", "Working"), "C1")
    end(start(of), session.Suspended(), name="C1").elapse("session", "BackoffElapsed")
    assert (states(of), talk(of).id, talk(of).is_begun) == (("Spawning", "Working"), "C1", True)


def test_a_claim_resumes_the_conversation_that_the_board_has_kept() -> None:
    """With what it was charged; without one it begins another."""
    of = running(CLAUDE, KeptConversation("ann", "C1", Usage(40)))
    assert (talk(of).id, talk(of).is_begun, talk(of).charged) == ("C1", True, Usage(40))
    assert not talk(running(CLAUDE)).is_begun


def test_a_program_that_cannot_resume_begins_each_session_with_a_new_conversation() -> None:
    """Whatever it has named, and whatever was kept."""
    of = running(FORGETFUL, KeptConversation("ann", "C1", Usage(40)))
    assert talk(of).id == identifier(TOKEN, "T1", 2, "ann", 1)
    of = end(interrupt(of), name=talk(of).id)
    assert talk(of).id == identifier(TOKEN, "T1", 2, "ann", 2)
    assert kept(of) == []


def test_the_board_hears_of_a_conversation_before_the_end_of_its_claim() -> None:
    """With its charges, so that the next claim resumes it."""
    of = end(running(CODEX), session.Error("no"), Usage(30), "C1")
    assert [type(e) for _, _, e in of.told()] == [fleet_task.ConversationKept, task.Failed]
    assert kept(of) == [(2, KeptConversation("ann", "C1", Usage(30)))]


def test_a_session_that_ends_after_its_claim_still_reports_its_conversation() -> None:
    """Of the claim that it was of."""
    of = running(CODEX).hear("board", "assignment", assignment.Recalled("T1", 2, "preempted"))
    assert kept(end(of, usage=Usage(30), name="C1")) == [(2, KeptConversation("ann", "C1", Usage(30)))]


# A loss


def test_a_claim_goes_on_with_another_conversation_when_its_own_is_lost() -> None:
    """Once; the board forgets the lost one, and the task has not failed."""
    of = end(running(CLAUDE, KeptConversation("ann", "C1", Usage(40))), LOST)
    assert (states(of), kept(of)) == (("CoolingDown", "Working"), [(2, None)])
    of.elapse("session", "BackoffElapsed")
    assert (states(of), talk(of).id) == (("Spawning", "Working"), identifier(TOKEN, "T1", 2, "ann", 1))
    end(start(of), LOST)
    assert states(of) == ("CoolingDown", "Idle")
    assert [type(e) for _, _, e in of.told()] == [task.Failed]


@pytest.mark.parametrize("talks", [CLAUDE, CODEX])
def test_the_prompt_after_a_loss_tells_what_another_conversation_does_not_remember(talks: Talks) -> None:
    """It was not interrupted. A later session of that conversation was."""
    of = end(running(talks, KeptConversation("ann", "C1", Usage(40))), LOST).elapse("session", "BackoffElapsed")
    assert prompt_of(of) == f"do it\n\n{ANEW}"
    end(interrupt(start(of)), session.Error("cancelled"), name="C2")
    assert prompt_of(of).startswith(f"do it\n\n{CONTINUED}")


def test_the_prompt_right_after_an_interrupted_session_tells_of_the_loss_of_its_conversation() -> None:
    of = end(interrupt(running(CLAUDE, KeptConversation("ann", "C1", Usage(40)))), LOST)
    assert prompt_of(of).startswith(f"do it\n\n{ANEW}")


def test_a_chosen_identifier_that_is_taken_is_replaced() -> None:
    """The next session gets another one."""
    of = end(running(CLAUDE), LOST).elapse("session", "BackoffElapsed")
    assert (states(of), talk(of).id) == (("Spawning", "Working"), identifier(TOKEN, "T1", 2, "ann", 2))


def test_a_loss_without_a_conversation_is_a_failure() -> None:
    """So is one before the session runs, and one that stops the agent."""
    assert states(end(running(CODEX), LOST)) == ("CoolingDown", "Idle")
    assert states(end(spawning(CLAUDE), LOST)) == ("CoolingDown", "Idle")
    one_error = session_profiles.LimitsChanged(session.Limits(max_total_errors=1))
    of = spawning(CLAUDE).hear("board", "session", one_error)
    assert states(end(start(of), LOST)) == ("Stopped", "Idle")


def test_another_failure_is_no_loss() -> None:
    """Only the outcome of a lost conversation begins anew."""
    assert states(end(running(CLAUDE), session.Error("no"))) == ("CoolingDown", "Idle")
    of = end(interrupt(running(CLAUDE, KeptConversation("ann", "C1", Usage(40)))), LOST)
    assert (states(of), talk(of).is_begun) == (("Spawning", "Working"), False)


# Costs


def test_only_the_difference_of_a_total_is_charged() -> None:
    """Over the sessions of a claim, with what a killed session had printed; and after a retry with what was kept."""
    of = end(interrupt(running(CODEX, metered=True)), usage=Usage(30, 3, 1), name="C1")
    assert of.record(usage_meter.REF).spent == Amounts(30, 4, 0, 1)
    end(start(of), session.Error("no"), Usage(50, 5, 2), "C1")
    assert of.record(usage_meter.REF).spent == Amounts(50, 7, 0, 1)
    assert talk(of).charged == Usage(50, 5, 2)
    of = end(running(CODEX, KeptConversation("ann", "C1", Usage(50, 5, 2)), metered=True), None, Usage(70, 6, 2), "C1")
    assert of.record(usage_meter.REF).spent == Amounts(20, 1, 0, 1)


def test_a_total_without_anything_new_costs_nothing_and_is_no_silence() -> None:
    """A smaller one neither: a charge is never negative."""
    for total in (Usage(50), Usage(10)):
        of = end(
            running(CODEX, KeptConversation("ann", "C1", Usage(50)), metered=True), session.Error("no"), total, "C1"
        )
        of.elapse("session", "BackoffElapsed")
        (wanted,) = [e for _, _, e in of.told() if isinstance(e, worker_slot.WorkWanted)]
        assert (wanted.spent, wanted.silent) == (Amounts(sessions=1), False)


def test_a_session_that_reports_nothing_is_silent() -> None:
    """Also one that names its conversation."""
    of = end(running(CODEX, metered=True), session.Error("no"), name="C1").elapse("session", "BackoffElapsed")
    assert [e.silent for _, _, e in of.told() if isinstance(e, worker_slot.WorkWanted)] == [True]


def test_the_cost_of_a_session_is_charged_as_it_is() -> None:
    """And a total after it only by the rest: a program may have been exchanged for a newer one."""
    of = end(interrupt(running(CODEX, metered=True)), usage=Usage(30), name="C1", is_total=False)
    end(start(of), session.Error("no"), Usage(45), "C1")
    assert of.record(usage_meter.REF).spent == Amounts(45, 0, 0, 1)


def test_another_conversation_is_charged_from_its_beginning() -> None:
    """A total under another name has nothing to do with the earlier one; neither has one after a loss."""
    of = end(interrupt(running(CODEX, KeptConversation("ann", "C1", Usage(50)), metered=True)), None, Usage(20), "C2")
    assert (of.record(usage_meter.REF).spent.microusd, talk(of).charged) == (20, Usage(20))
    end(start(of), LOST)
    end(start(of.elapse("session", "BackoffElapsed")), session.Error("no"), Usage(5), "C3")
    assert of.record(usage_meter.REF).spent.microusd == 25


def test_the_next_session_gets_the_conversation_as_the_last_one_has_left_it() -> None:
    """Also where the end of a session is counted first, and begins the next one in the same step."""
    of = end(interrupt(running(CLAUDE, metered=True)), usage=Usage(1), name="C1")
    assert (states(of), talk(of).id, talk(of).count) == (("Spawning", "Working"), "C1", 1)


ENDS: Final = st.builds(
    SessionEnded,
    st.sampled_from(["", "C1"]),
    st.builds(Usage, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    is_total=st.just(True),  # noqa: FBT003 - a strategy
)


@given(st.lists(st.one_of(ENDS, st.just("retry"))))
def test_the_sum_of_all_charges_of_a_conversation_is_its_greatest_total(course: list[SessionEnded | str]) -> None:
    """However often it is resumed, by sessions and by claims."""
    record = _after(Conversation(resumes=True), ClaimBegan("T1", 1), Began("C1"))
    charged, greatest = Usage(), Usage()
    for each in course:
        if isinstance(each, str):
            record = _after(record, ClaimBegan("T1", 2, KeptConversation("ann", record.named, record.charged)))
            continue
        charged = charged.plus(charge(record, each))
        record = _after(record, each)
        greatest = Usage(*map(max, zip(_figures(greatest), _figures(each.usage), strict=True)))
    assert charged == record.charged == greatest


class Process(msgspec.Struct, frozen=True):
    """A session: its requests, the printed part of them, and its end."""

    served: Usage
    printed: Usage
    how: str

    @property
    def charged(self) -> Usage:
        """What the session is to be charged at last: a killed one no more than it has printed."""
        return self.printed if self.how == "killed" else self.served


def _process(parts: tuple[int, ...], how: str) -> Process:
    printed, rest = Usage(*parts[:3]), Usage(*parts[3:])
    served = printed.plus(rest)
    return Process(served, served if how == "ended" else printed, how)


PROCESSES: Final = st.builds(
    _process, st.tuples(*[st.integers(0, 9)] * 6), st.sampled_from(["ended", "killed", "terminated", "killed at last"])
)


@given(st.lists(st.one_of(PROCESSES, st.just(None))))
def test_the_charges_are_what_the_sessions_were_served_however_they_ended(course: list[Process | None]) -> None:
    """Ended, terminated, killed, killed after their result: in any order, over claims.

    The program saves its total at its end, unless it is killed. Its result tells the total and its part. A terminated
    session tells what it had printed; the next total has the rest. Nothing tells what a killed one had not printed.
    """
    record, charged, saved = _after(Conversation(resumes=True), ClaimBegan("T1", 1), Began("C1")), Usage(), Usage()
    for each in (*course, _process((1,) * 6, "ended")):
        if each is None:
            kept = KeptConversation("ann", record.named, record.charged, record.unsaved)
            record = _after(record, ClaimBegan("T1", 2, kept))
            continue
        was_killed = each.how.startswith("killed")
        if each.how in {"ended", "killed at last"}:
            ended = SessionEnded("C1", saved.plus(each.served), is_total=True, before=saved, was_killed=was_killed)
        else:
            ended = SessionEnded("C1", each.printed, was_killed=was_killed)
        saved = saved if was_killed else saved.plus(each.served)
        charged = charged.plus(charge(record, ended))
        record = _after(record, ended)
    expected = reduce(Usage.plus, (each.charged for each in course if each is not None), Usage(2, 2, 2))
    assert charged == record.charged == expected


def test_a_third_session_after_a_killed_one_is_charged_its_own_cost() -> None:
    """Its total leaves out the killed one, and the board keeps how much that is for the next claim."""
    of = end(interrupt(running(CLAUDE, metered=True)), usage=Usage(7), name="C1", before=Usage())
    end(interrupt(start(of)), usage=Usage(1), name="C1", is_total=False, was_killed=True)
    end(interrupt(start(of)), usage=Usage(14), name="C1", before=Usage(7))
    assert of.record(usage_meter.REF).spent.microusd == 15
    end(start(of), session.Error("no"), usage=Usage(21), name="C1", before=Usage(14))
    assert of.record(usage_meter.REF).spent.microusd == 22
    known = KeptConversation("ann", "C1", Usage(22), Usage(1))
    assert kept(of) == [(2, known)]
    of = end(running(CLAUDE, known, metered=True), usage=Usage(28), name="C1", before=Usage(21))
    assert of.record(usage_meter.REF).spent.microusd == 7


def _figures(usage: Usage) -> tuple[int, int, int]:
    return usage.cost_microusd, usage.input_tokens, usage.output_tokens


def _after(record: Conversation, *events: Event) -> Conversation:
    for event in events:
        step = conversation.machine.step(record, event)
        assert isinstance(step, Step)
        record = step.record
    return record


# The machine and its fleets


def little(c: Conversation) -> bool:
    """Tell whether a conversation was charged little, so that its states have an end."""
    most = 6
    return c.charged.cost_microusd <= most


BOUNDS: Final = Bounds(within={"conversation": little}, compared=300)


@pytest.mark.parametrize("talks", [CLAUDE, CODEX, FORGETFUL], ids=["both", "resumes", "chooses"])
def test_the_machine_has_its_properties_for_every_kind_of_program(talks: Talks) -> None:
    """In all of its states; with every row used by a program that can do both."""
    first = Conversation(chooses=talks.chooses, resumes=talks.resumes)
    report = check(conversation.machine.starting(first), bounds=BOUNDS)
    broken = [each.name for each in report.broken() if each.name != "a claim has lost a conversation"]
    assert broken == []
    if talks is CLAUDE:
        missing = must_hold(conversation.machine, BOUNDS).missing
        assert [each for each in missing if "accepts_a_choice" not in each] == []


def _first(event: type[Event], to: Any, action: Callable[..., Any], when: Callable[..., bool]) -> Machine[Any]:
    return conversation.machine.with_rows(row(State.BEGUN, event, to, action, when=when))


def _charges_all(c: Conversation, e: SessionEnded) -> Step[Conversation, Any]:
    return Step(replace(conversation.count(c, e).record, charged=c.charged.plus(e.usage)))


def _takes_the_total(c: Conversation, e: SessionEnded) -> Step[Conversation, Any]:
    return Step(replace(conversation.count(c, e).record, charged=e.usage))


def _leaves_nothing_out(c: Conversation, e: SessionEnded) -> Step[Conversation, Any]:
    return Step(replace(conversation.count(c, e).record, unsaved=c.unsaved))


def _has_nothing_left_out(c: Conversation, e: ClaimBegan) -> Step[Conversation, Any]:
    return Step(replace(conversation.take_up(c, e).record, unsaved=Usage()))


def _forgets_the_name(c: Conversation, _e: SessionEnded) -> Step[Conversation, Any]:
    return Step(replace(c, named="C9"))


def _forgets_the_charges(c: Conversation, e: ClaimBegan) -> Step[Conversation, Any]:
    return Step(replace(conversation.take_up(c, e).record, charged=Usage()))


def _keeps_the_old_one(c: Conversation, e: ClaimBegan) -> Step[Conversation, Any]:
    return Step(replace(c, task=e.task, epoch=e.epoch))


def _does_not_count(c: Conversation, e: IdChosen) -> Step[Conversation, Any]:
    return Step(replace(c, chosen=e.id))


MUTANTS: Final[Mutants] = {
    "a total is charged as a whole": (
        "the sum of the charges",
        lambda: _first(SessionEnded, STAY, _charges_all, _is_total_of_it),
    ),
    "a killed session is taken for one that the next total has": (
        "leave out its killed sessions",
        lambda: _first(SessionEnded, STAY, _leaves_nothing_out, _is_of_it),
    ),
    "a claim forgets what the totals leave out": (
        "never charged twice",
        lambda: _first(ClaimBegan, State.BEGUN, _has_nothing_left_out, conversation.may_resume),
    ),
    "a smaller total lowers the charges": (
        "never charged twice",
        lambda: _first(SessionEnded, STAY, _takes_the_total, _is_total_of_it),
    ),
    "the name is forgotten": (
        "kept until it is lost",
        lambda: _first(SessionEnded, STAY, _forgets_the_name, _is_total_of_it),
    ),
    "a claim begins with nothing charged": (
        "never charged twice",
        lambda: _first(ClaimBegan, State.BEGUN, _forgets_the_charges, conversation.may_resume),
    ),
    "a claim begins with the conversation of another": (
        "resumes the conversation that was kept for it",
        lambda: _first(ClaimBegan, State.BEGUN, _keeps_the_old_one, _has_none),
    ),
    "a lost conversation is kept": (
        "kept until it is lost",
        lambda: _first(SessionEnded, STAY, conversation.count, conversation.is_over),
    ),
    "two conversations get one number": (
        "chosen for one conversation",
        lambda: instead(
            conversation.machine, row((State.UNNAMED, State.CHOSEN), IdChosen, State.CHOSEN, _does_not_count)
        ),
    ),
    "a name leaves the conversation unbegun": (
        "exactly if it has a name",
        lambda: instead(conversation.machine, row(State.UNNAMED, Began, STAY, conversation.name)),
    ),
    "no claim can begin with a conversation": (
        "at any time",
        lambda: instead(conversation.machine, row(State.BEGUN, ClaimBegan, State.UNNAMED, when=_never)),
    ),
}


def _is_total_of_it(c: Conversation, e: SessionEnded) -> bool:
    return e.is_total and not e.is_lost and e.conversation == c.named


def _is_of_it(c: Conversation, e: SessionEnded) -> bool:
    return not e.is_lost and e.conversation == c.named


def _has_none(_c: Conversation, e: ClaimBegan) -> bool:
    return e.kept is None


def _never(_c: Conversation, _e: ClaimBegan) -> bool:
    return False


@pytest.mark.no_cover
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mistake_in_the_machine_breaks_a_property(mutant: Any) -> None:
    """Each of these mutants is killed."""
    words, make = mutant
    must_break(words, make(), BOUNDS)


NEAR: Final = replace(named("fleet-talking").bounds, states=3_000, compared=0)

WITHOUT: Final = {
    "take_up": "a session has the conversation of its claim",
    "keep": "the board keeps what a conversation was charged",
    "choose": "a chosen conversation is known before its session begins",
}
"""The property that breaks without a rule."""


def small(talks: Talks) -> Any:
    """Return the opening of a fleet of one agent whose program can do this with conversations."""
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=3)
    agent = AgentPlan("ann", limits, talks=talks)
    return tuple(opening(Plan("small", (agent,), (TaskPlan("T1", "do it", max_retries=1),)), 0))


@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "prop"), WITHOUT.items(), ids=WITHOUT)
def test_without_one_of_its_rules_a_property_breaks(name: str, prop: str) -> None:
    """In the nearest states of a small fleet."""
    report = check(without(name, "worker"), opening=small(CLAUDE), bounds=NEAR)
    assert prop in str([each.name for each in report.broken()])


@pytest.mark.no_cover
@pytest.mark.parametrize("talks", [CLAUDE, CODEX, FORGETFUL], ids=["both", "resumes", "chooses"])
def test_a_fleet_has_its_properties_in_the_nearest_states(talks: Talks) -> None:
    """For every kind of program; ``fleet-talking`` has all states of one of them."""
    report = check(system, opening=small(talks), bounds=replace(NEAR, compared=300))
    assert [each.name for each in report.broken()] == []


def _talks(
    *, worker: KeptConversation | None, board: KeptConversation | None, current: bool = True, epoch: int = 2
) -> Any:
    """Return a fleet in which a worker and the board have these conversations about claim 2 of a task."""
    of_worker = conversations.Ledger((conversations.Talk("T1", 2, "ann", worker),))
    agent = "" if board is None else board.agent
    of_board = conversations.Ledger((conversations.Talk("T1", epoch, agent, board, current),), is_board=True)
    return Projection({"worker/ann": of_worker, "board": of_board, "service/web": None}, 0)


C1: Final = KeptConversation("ann", "C1", Usage(5))
DEARER: Final = KeptConversation("ann", "C1", Usage(7))
OF_BEN: Final = KeptConversation("ben", "C2", Usage(7))


@pytest.mark.parametrize(
    ("fleet", "agrees"),
    [
        (_talks(worker=C1, board=C1), True),
        (_talks(worker=None, board=None), True),
        (_talks(worker=C1, board=DEARER), False),
        (_talks(worker=C1, board=None), False),
        (_talks(worker=None, board=C1), False),
        (_talks(worker=None, board=OF_BEN), True),
        (_talks(worker=C1, board=None, current=False), True),
        (_talks(worker=C1, board=DEARER, current=False), False),
        (_talks(worker=C1, board=OF_BEN, epoch=3), True),
        (_talks(worker=C1, board=DEARER, epoch=3), False),
    ],
)
def test_the_board_and_the_worker_agree_about_a_conversation(fleet: Any, agrees: bool) -> None:  # noqa: FBT001
    """About one of the current claim always, and about another one as long as the board keeps it."""
    assert conversations.board_keeps_what_was_charged(fleet) is agrees
    in_flight = Projection(fleet.aggregates, 1)
    assert conversations.board_keeps_what_was_charged(in_flight)


def test_a_kept_conversation_is_one_of_a_claim_that_stands() -> None:
    """Not one of a task that is over."""
    assert conversations.is_kept(_talks(worker=None, board=C1))
    assert not conversations.is_kept(_talks(worker=C1, board=None))
    assert not conversations.is_kept(_talks(worker=C1, board=C1, current=False))
