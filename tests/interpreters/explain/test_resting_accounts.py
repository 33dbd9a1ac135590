"""An account that rests: why its agents wait, until when, and what an operator can do."""

from aggregate_hand import Hand
from board_hand import ask, make, opened
from lifefold.core.fleet.board import account, worker_slot
from lifefold.core.fleet.dispatch import accounts
from lifefold.interpreters.cli import awaited
from lifefold.interpreters.cli.wording import clock_time
from lifefold.interpreters.explain import pending, why

HOUR_MS = 3_600_000
TOLD = account.LimitReported(HOUR_MS, HOUR_MS, "five_hour", "limit reached")


def board(said: account.LimitReported, *workers: str) -> Hand:
    """Return a board with two tasks, and with agents of one account that has met this limit."""
    slots = {f"worker_slot:{name}": worker_slot.WorkerSlot(account="claude") for name in workers}
    tasks = (make("T1"), make("T2"))
    of = opened(*tasks, worker_slots=(), **slots, **{accounts.ref_of("claude"): account.Account()})
    return ask(of.hear("worker/gone", accounts.ref_of("claude"), said), *workers)


def told(of: Hand) -> tuple[str, str, list[tuple[str, str]]]:
    """Return what is said of the first task: its state, what moves it on, and the commands."""
    found = why.explain(why.look({"board": of.aggregate}, "T1", of.now_ms), why.Story("T1"))
    return found.sentence, found.onward, [(each.command, each.to) for each in found.options]


def test_why_names_the_account_and_the_end_of_its_rest() -> None:
    """A task that only such agents may take goes on by itself; an operator may try earlier."""
    sentence, onward, options = told(board(TOLD, "ann"))
    assert sentence.endswith("no agent is free: ann's account claude rests (five_hour limit), and resumes in 1 h.")
    assert onward == "T1 goes on when account claude resumes, in 1 h."
    assert ("resume", "--account claude") in options


def test_an_account_is_named_once_for_all_its_agents() -> None:
    """They wait for the same moment."""
    assert told(board(TOLD, "ann", "ben"))[1] == "T1 goes on when account claude resumes, in 1 h."


def test_why_names_the_agent_that_tries_an_account() -> None:
    """The others wait for its session; no command helps."""
    of = board(account.LimitReported(), "ann", "ben")
    of.elapse(accounts.ref_of("claude"), "RestOver")
    found = why.explain(why.look({"board": of.aggregate}, "T2", of.now_ms), why.Story("T2"))
    assert "ben's account claude is tried again by ann" in found.sentence
    assert found.onward == "T2 goes on when the session of ann, which tries account claude again, succeeds or ends."
    assert [each.command for each in found.options] == ["cancel"]


def test_a_limit_without_a_name_has_the_words_of_the_agent() -> None:
    """They are all that is known."""
    assert (
        "rests (try later), and resumes in 1 min" in told(board(account.LimitReported(message="try later"), "ann"))[0]
    )


def test_the_status_has_a_line_for_a_resting_account() -> None:
    """With its end in local time, and the command that tries it again."""
    of = board(TOLD, "ann")
    (waiting,) = pending.waiting({"board": of.aggregate})
    assert (waiting.about, waiting.names, waiting.until_ms) == (pending.Awaited.ACCOUNT, ("claude",), HOUR_MS)
    until = clock_time(HOUR_MS / 1_000).rpartition(":")[0]
    (line,) = awaited.lines((waiting,), {})
    assert line.startswith(f"account claude rests until {until} (five_hour limit); sooner: ")
    assert line.endswith("lifefold resume --account claude")


def test_an_open_account_has_no_line() -> None:
    """Neither has one that is tried again."""
    of = board(account.LimitReported(), "ann").elapse(accounts.ref_of("claude"), "RestOver")
    assert pending.waiting({"board": of.aggregate}) == ()
