"""Rules that are lost are found by seeds, and shrunk: few deviations, few events, in a small fleet."""

import msgspec
import pytest

from lifefold.core import fleet
from lifefold.interpreters.campaign.emitted import emitted
from lifefold.interpreters.campaign.findings import SeedFinding, small
from lifefold.interpreters.simulate import Faults, Limits, Run, simulate
from lifefold.interpreters.simulate.simulation import Found
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.targets.target import Target
from lost_rules import BOARD, WORKER, without

SEEDS = 1_000
"""Within how many seeds a lost rule is found."""

LIMITS = Limits(inputs=3_000)
"""How long a run is at most: a fleet without one of its rules may go round for ever."""

NOT_SEEN = {
    "interrupt": "an urgent message changes only when it is read, and no property is about that",
    "decide_late": "in a simulation no operator adds a task, so none comes to a plan that is decided",
    "dismiss": "an agent is down for moments, and hardly ever stopped in one; the check of fleet-restarts finds it",
    "give_back": "the same",
    "enforce": "in a simulation no operator changes the plan; the check of fleet-changing finds it",
    "continue_with_new_terms": "the same",
    "gain_role": "the same, and in a check no change adds an agent; test_plan_enforcement.py finds it",
    "listen": "worker and board agree that nothing is charged; tests/core/fleet/worker/test_conversation.py finds it",
    "mark_taken": "a message is in the next prompt again; tests/core/fleet/worker/test_steering.py finds it",
    "mark_taken_at_the_end": "the same",
    "report_nothing_done": "each simulated session changes something; test_nothing_done_by_a_session.py finds it",
    "interrupt_at_a_limit": "a session may wait long at its limit; tests/core/fleet/worker/test_output.py finds it",
}
"""Rules without which simulated fleets keep their properties."""

OF_PEOPLE = frozenset({"retry_granted", "divide", "gather", "lose_role", "cancel_parts", "decide"})
"""Rules of what only a fleet has whose plan a person approves, whose tasks take roles and may be split."""

OF_BUDGETS = frozenset(
    {"reserve", "settle", "go_without", "unblock_after_raise", "measure", "clear_meter", "step_back"}
)
"""Rules of what only a fleet has whose sessions are limited."""

RENEWED = frozenset({"reopen"})
"""Rules of what only a fleet has whose budgets are filled anew."""

OF_TRUST = frozenset({"earn", "trust_again", "withdraw"})
"""Rules of what only a fleet has that gates anything."""

OF_SILENCE = frozenset({"keep_watch", "give_up"})
"""Rules of what only a fleet has whose sessions are watched."""
OF_RESTARTS = frozenset({"on_agent_stopped", "ask", "restart_agent", "grant", "spend"})
"""Rules of a fleet whose agents are restarted."""

OF_PREEMPTION = frozenset({"go_on_alone", "preempt", "take_away", "use_request", "drop_request"})
"""Rules of a fleet in which tasks preempt others."""

OF_ABORTS = frozenset({"spread", "abort_when_opened"})
"""Rules of a fleet in which something may be aborted."""

OF_SERVICES = frozenset({"close_down"})
"""Rules of a fleet that has services."""

OF_ORPHANS = frozenset({"begin_inspection", "report_death", "report_rescue", "report_loss"})
"""Rules of what only a fleet has that verifies what dead sessions have left."""

OF_ACCOUNTS = frozenset(
    {"leave_account", "admit", "open_after_probe", "tell_workers", "ask_account", "report_limit"},
)
"""Rules of a fleet whose agents share accounts."""

OF_CONVERSATIONS = frozenset({"listen", "keep", "take_up", "choose", "name_conversation"})
"""Rules of a fleet whose agents have conversations."""

OF_MESSAGES = frozenset(
    {"take_messages", "pass_on_message", "deliver_messages", "close_task_mailbox", "close_late_mailbox"}
)
"""Rules of a fleet whose operators write to tasks."""

OF_QUESTIONS = frozenset({"keep_open"})
"""Rules of a fleet whose sessions may ask operators."""

OF_NOTIFICATIONS = frozenset(
    {
        *("announce_task", "announce_plan", "announce_limit", "announce_budget", "announce_stop", "announce_service"),
        *("note_question", "note_silence", "pass_on"),
    }
)
"""Rules of a fleet with notifiers."""

OF_TURNS = frozenset(
    {
        *("launch_turn", "run_turn", "reap_turn", "reap_after_end", "follow_work", "begin_turn", "end_turn"),
        *("verify_turn", "keep_following", "stop_following", "interrupt_at_a_limit"),
    }
)
"""Rules of a fleet that follows the output of its sessions."""

OF_STEERING = frozenset({"open_steering", "close_steering", "post_message", "mark_taken", "mark_taken_at_the_end"})
"""Rules of a fleet whose running sessions take messages."""

TAKE_LONG = frozenset(
    {
        *("recall", "release", "abandon", "retry_granted", "divide", "gather", "look_again", "lose_role"),
        *("take_away", "use_request", "give_up"),
        *("block_waiting", "free_waiting", "cancel_parts", "leave_to_others", "unblock_after_raise"),
        *("trust_again", "withdraw", "abort_when_opened", "close_down", "drop_request", "preempt"),
        *("note_question", "note_silence", "pass_on", "announce_limit", "announce_budget", "take_messages"),
    }
)
"""Rules without which it takes long to shrink a run: with an event left out, the fleet goes on for long."""


FINDS = {
    "go_on_alone": 69,
    "cancel_parts": 162,
    "abort_when_opened": 271,
    "release": 203,
    "keep": 37,
    "open_after_probe": 37,
    "note_question": 239,
    "announce_limit": 56,
    "announce_budget": 49,
    "leave_to_others": 66,
    "gather": 39,
    "recall": 34,
    "take_messages": 21,
}
"""Which of the thousand seeds has found a rule, where it is a late one. After another change another seed may."""


def concerned(name: str) -> Target:
    """Return a fleet that has what a rule is about."""
    kinds = {**dict.fromkeys(OF_PEOPLE, "governed-"), **dict.fromkeys(OF_BUDGETS, "limited-")}
    kinds |= {**dict.fromkeys(RENEWED, "renewed-"), **dict.fromkeys(OF_TRUST, "trusted-")}
    kinds |= {**dict.fromkeys(OF_SILENCE, "stalling-"), **dict.fromkeys(OF_RESTARTS, "restarts-")}
    kinds |= dict.fromkeys(OF_PREEMPTION, "preempting-")
    kinds |= dict.fromkeys(OF_ABORTS, "aborts-")
    kinds |= dict.fromkeys(OF_SERVICES, "serving-")
    kinds |= {**dict.fromkeys(OF_ORPHANS, "orphans-"), **dict.fromkeys(OF_ACCOUNTS, "quota-")}
    kinds |= {**dict.fromkeys(OF_CONVERSATIONS, "talking-"), **dict.fromkeys(OF_QUESTIONS, "asking-")}
    kinds |= {**dict.fromkeys(OF_TURNS, "turns-"), **dict.fromkeys(OF_MESSAGES, "messages-")}
    kinds |= {**dict.fromkeys(OF_NOTIFICATIONS, "telling-"), **dict.fromkeys(OF_STEERING, "steering-")}
    return named(f"fleet-{kinds.get(name, '')}2x3")


def first(name: str, target: Target) -> tuple[int, Run]:
    """Return the first seed that finds something, and its run; the seed that has found this rule is tried before."""
    runs = (
        (
            seed,
            simulate(target.subject, opening=target.opening, seed=seed, environment=target.environment, limits=LIMITS),
        )
        for seed in dict.fromkeys((FINDS.get(name, 0), *range(SEEDS)))
    )
    found = next(((seed, run) for seed, run in runs if run.found is not None), None)
    assert found is not None, f"no seed of {target.name} needs {name}: see `concerned` and `NOT_SEEN`"
    return found


SHRINKABLE = [each for each in (*BOARD, *WORKER) if each not in TAKE_LONG and each not in NOT_SEEN]
SHRUNK = SHRINKABLE[::6]
"""Without which rules a run is always shrunk: how that is done depends on no rule. Campaigns shrink all of them."""


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in SHRUNK else pytest.mark.campaign) for each in SHRINKABLE]
)
def test_a_rule_that_is_lost_is_found_and_made_small(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a thousand seeds; what shows it is short, and fails as a test as long as it is lost."""
    monkeypatch.setattr(fleet, "system", without(name))
    target = concerned(name)
    seed, run = first(name, target)
    assert run.found is not None
    finding = small(target, seed, run, Faults(), LIMITS)
    assert finding.run.found is not None
    assert finding.run.found.prop == run.found.prop
    assert len(finding.run.deviations) <= len(run.deviations)
    there: dict[str, object] = {}
    exec(emitted([finding]), there)  # noqa: S102 - it is a test file
    (test,) = (each for each_name, each in there.items() if each_name.startswith("test_"))
    assert callable(test)
    with pytest.raises(AssertionError, match=": broken: not so of "):
        test()
    monkeypatch.undo()
    test()


FOUND = sorted(TAKE_LONG.union(SHRINKABLE).difference(SHRUNK))


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FOUND[::4] else pytest.mark.campaign) for each in FOUND]
)
def test_a_rule_that_is_lost_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a seed, also where its run is not shrunk here; with the rule that seed finds nothing."""
    monkeypatch.setattr(fleet, "system", without(name))
    seed, _ = first(name, concerned(name))
    monkeypatch.undo()
    target = concerned(name)
    run = simulate(target.subject, opening=target.opening, seed=seed, environment=target.environment, limits=LIMITS)
    assert run.found is None


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("name", "size"),
    [(name, size) for name in NOT_SEEN for size in dict.fromkeys(("fleet-governed-2x3", concerned(name).name))],
)
def test_what_is_said_of_rules_that_are_not_missed_is_so(name: str, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as a property is about them, they are to be found like the others, most of which 16 seeds find."""
    monkeypatch.setattr(fleet, "system", without(name))
    target = named(size)
    for seed in range(16):
        run = simulate(target.subject, opening=target.opening, seed=seed, environment=target.environment, limits=LIMITS)
        assert run.found is None, (seed, run.found)


@pytest.mark.parametrize("prop", ['it says """no"""', 'it says "no"', "C:\\new\\u0", "two\nlines", "\\"], ids=repr)
def test_a_property_of_any_text_is_a_test(prop: str) -> None:
    """Quotes and backslashes in it do not break the file that it is written to."""
    target = named("fleet-1x1")
    run = simulate(target.subject, opening=target.opening, limits=Limits(until_ms=1))
    broken = msgspec.structs.replace(run, found=Found("fleet", prop, "worker/a", 1))
    there: dict[str, object] = {}
    exec(emitted([SeedFinding(target, 1, broken, LIMITS)]), there)  # noqa: S102 - it is a test file
    (test,) = (each for name, each in there.items() if name.startswith("test_"))
    assert test.__doc__ == f"fleet: {prop}."
