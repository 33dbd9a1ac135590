"""``answer``, ``approve`` and ``reject`` with questions: their names, their refusals, and what the screens show."""

import json
from pathlib import Path

import pytest

from asking_log import LEAVE, T1, WORDS, at_work
from fleet_log import ME, FleetLog, folded, said
from lifefold.core.fleet.worker.question import REF, Answer, QuestionAnswered, Terms, Verdict
from lifefold.core.kernel import replace
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.commands.answering import must_be_clear
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.explain import questions


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with a permission and a question that wait."""
    return at_work(tmp_path / "fleet.db", LEAVE, WORDS).path


def answers(log: Path) -> list[tuple[str, int, Answer]]:
    """Return what operators have answered: who, to which question, and what."""
    return [
        (each.actor, each.event.number, each.event.answer)
        for each in said(log)
        if isinstance(each.event, QuestionAnswered)
    ]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["approve", "ann/Q1"], (1, Answer(Verdict.ALLOWED))),
        (["approve", "Q1", "--reason", "once"], (1, Answer(Verdict.ALLOWED, "once"))),
        (["reject", "ann/Q1", "--reason", "no"], (1, Answer(Verdict.REFUSED, "no"))),
        (["reject", "Q2"], (2, Answer(Verdict.REFUSED))),
        (["answer", "Q2", "the blue one"], (2, Answer(Verdict.ANSWERED, "the blue one"))),
    ],
)
def test_an_operator_answers_by_the_name_of_a_question(log: Path, words: list[str], answer: tuple[int, Answer]) -> None:
    """Through the log, with the operator's name."""
    assert main([*words, "--db", str(log)]) == 0
    assert answers(log) == [(ME, *answer)]
    kept = folded(log).record("worker/ann", REF).numbered(answer[0])
    assert kept.answer == answer[1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["approve", "ann/Q2"], "ann/Q2: refused: it asks for an answer in words: answer or reject it"),
        (["answer", "ann/Q1", "yes"], "ann/Q1: refused: it asks for a permission: approve or reject it"),
        (["approve", "ann/Q9"], "ann/Q9: refused: there is no such question now"),
        (
            ["answer", "Q9", "yes"],
            "it may be answered, or its session is over; there are ann/Q1 and ann/Q2",
        ),
        (["approve", "Q9"], "no question Q9 waits for an answer"),
        (["approve", "ben/Q1"], "there is no task 'ben/Q1'"),
        (["answer", "ann/Q2", " "], "the answer must have"),
        (["approve"], "; name the questions that wait: ann/Q1 ann/Q2"),
        (["reject", "T1"], "it is running: it does not wait for an approval now"),
        (["reject", "ann/Q1", "--reason", " "], "the reason must have"),
    ],
)
def test_an_answer_that_does_not_fit_changes_nothing(
    log: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    """Exit code 2, with the reason and what fits."""
    assert main([*words, "--db", str(log)]) == 2
    printed = capsys.readouterr()
    assert why in printed.out + printed.err
    assert answers(log) == []


def test_tasks_and_questions_are_decided_together(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each name."""
    assert main(["approve", "T1", "ann/Q1", "--db", str(log)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("T1: refused: it is running")
    assert lines[1].startswith("ann/Q1: approved: its agent goes on")


def test_a_fleet_without_questions_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table of the fleet file."""
    log = FleetLog(tmp_path / "fleet.db", T1)
    assert main(["approve", "ann/Q1", "--db", str(log.path)]) == 2
    assert "the fleet file has no table [fleet.questions]" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["answer", "ann/Q2", "x"], ["approve", "ann/Q1"], ["reject", "ann/Q1"]])
def test_no_session_answers(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """Not even the session that asks."""
    monkeypatch.setenv("LIFEFOLD_AGENT", "ann")
    assert main([*words, "--db", str(log)]) == 2
    assert "is for an operator" in capsys.readouterr().err
    assert answers(log) == []


def test_what_waits_comes_first_with_the_commands_that_help(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In status, in its JSON, and in why."""
    option = f"--db {log}"
    assert main(["status", "--db", str(log)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("!")]
    approve, answer = f"lifefold approve ann/Q1 {option}", f'lifefold answer ann/Q2 "..." {option}'
    assert lines == [
        f"! ann asks: may it run `rm -rf build`? {approve}, or lifefold reject ann/Q1 {option}",
        f"! ann asks: Which one? (red or blue): {answer}, or lifefold reject ann/Q2 {option}",
    ]
    assert main(["status", "--json", "--db", str(log)]) == 0
    first, second = json.loads(capsys.readouterr().out)["waiting"]
    assert (first["about"], first["names"], first["command"], first["since_ms"]) == (
        "question",
        ["ann/Q1"],
        "approve",
        1,
    )
    assert (second["names"], second["command"]) == (["ann/Q2"], "answer")
    assert main(["why", "T1", "--db", str(log)]) == 0
    told = capsys.readouterr().out
    assert "; ann asks: may it run `rm -rf build`?\n" in told
    assert "T1 goes on when an operator answers ann/Q1." in told
    assert f"lifefold approve ann/Q1 {option}" in told


def test_silence_is_announced_where_it_is_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The oldest question has the time."""
    log = at_work(tmp_path / "fleet.db", LEAVE, WORDS, terms=Terms(timeout_ms=3_600_000))
    assert main(["status", "--db", str(log.path)]) == 0
    first, second = (line for line in capsys.readouterr().out.splitlines() if line.startswith("!"))
    assert "(refused by itself at " in first
    assert "(refused by itself at " not in second


def test_the_log_has_questions_in_words_and_no_token(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same words as on the screens."""
    main(["answer", "Q2", "blue", "--db", str(log)])
    capsys.readouterr()
    assert main(["log", "--all", "--db", str(log)]) == 0
    told = capsys.readouterr().out
    for words in (
        "QuestionsOpened: T1, claim 1\n",
        "QuestionAsked: may it run `rm -rf build`?",
        "QuestionAnswered: Q2 answered: blue",
    ):
        assert words in told


def test_a_question_of_two_agents_needs_its_full_name(tmp_path: Path) -> None:
    """A number alone is ambiguous, unless only one question with it waits."""
    fleet = folded(at_work(tmp_path / "fleet.db", LEAVE).path).aggregates
    ann = fleet["worker/ann"]
    both = {**fleet, "worker/ben": replace(ann, name="worker/ben")}
    assert questions.meant(fleet, "Q1") == questions.meant(both, "ann/Q1") == ("ann", 1)
    assert questions.meant(both, "Q1") is None
    assert questions.meant(both, "ben/Q1") == ("ben", 1)
    assert [each.name for each in questions.waiting(both)] == ["ann/Q1", "ben/Q1"]
    with pytest.raises(BadInput, match=r"^Q1 is the name of several questions; say ann/Q1 or ben/Q1$"):
        must_be_clear(both, "Q1")
    must_be_clear(both, "T1")


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (["reject", "Q1", "--reason", "no"], "the question was rejected already: no; an answer is final"),
        (["approve", "Q1"], "the permission was given already; an answer is final"),
    ],
)
def test_an_answered_question_is_refused_with_its_answer(
    log: Path, capsys: pytest.CaptureFixture[str], first: list[str], why: str
) -> None:
    """Its full name is known, and its short name no longer."""
    assert main([*first, "--db", str(log)]) == 0
    capsys.readouterr()
    assert main(["reject", "ann/Q1", "--db", str(log)]) == 2
    assert capsys.readouterr().out == f"ann/Q1: refused: {why}\n"
    assert main(["approve", "Q1", "--db", str(log)]) == 2
    assert "no question Q1 waits for an answer" in capsys.readouterr().err


def test_what_is_asked_is_said_in_one_short_line() -> None:
    """A long text is cut, and a tool without a subject has its input."""
    assert questions.words(replace(LEAVE, subject="x" * 1_000)) == f"may it run `{'x' * 300}…`?"
    write = replace(LEAVE, tool="Write", subject="a.py")
    assert questions.words(write) == "may it use Write on `a.py`?"
    assert questions.words(replace(write, subject="", input='{"a": 1}')) == 'may it use Write on `{"a": 1}`?'
    assert questions.words(replace(write, subject="")) == "may it use Write?"
    assert questions.words(replace(WORDS, choices=())) == "Which one?"
