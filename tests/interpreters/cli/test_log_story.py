"""``lifefold log``: the story by default, every transition with ``--all``, and both complete."""

import json
from pathlib import Path
from typing import Final

import pytest

from fleet_log import ME, FleetLog
from lifefold.core.fleet import TaskPlan
from lifefold.core.lifecycles import task
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.colours import OF_MOODS, painted
from lifefold.interpreters.cli.story_lines import story_lines
from lifefold.interpreters.explain.chronicle import News
from lifefold.interpreters.explain.chronicle_words import Mood

CAUSE: Final = f"{'the cause comes last; ' * 60}no space left on device"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the log of a task whose first attempt has failed, and of one that nothing has happened to."""
    return FleetLog(tmp_path / "x.db", TaskPlan("T1", "do it"), TaskPlan("T2", "do it")).failed("T1", CAUSE).path


def test_the_story_is_short_and_its_reasons_are_whole(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets one line for each event, without colours."""
    assert main(["log", "--task", "T1", "--db", str(log)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [each.partition("  T1  ")[2].strip() for each in told][1:] == ["begun by ann", f"attempt 1 failed: {CAUSE}"]
    assert "\x1b" not in "".join(told)


def test_all_has_every_transition_and_json_has_them_anyway(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program does not ask for ``--all``."""
    assert main(["log", "--all", "--db", str(log)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("worker_slot ann" in each and "TaskGiven" in each for each in lines)
    assert main(["log", "--json", "--db", str(log)]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cancel", "T2"), "cancelled"),
        (("pause", "ann"), "is paused"),
        (("stop", "ann"), "is stopped for good"),
        (("stop", "ann", "--drain"), "finishes what it has, and stops then"),
        (("stop", "ann", "--kill"), "is killed"),
    ],
)
def test_a_command_without_a_reason_is_told_with_its_operator_once(
    log: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No line repeats the command, or the person, as its own reason."""
    assert main([*words, "--db", str(log)]) == 0
    capsys.readouterr()
    assert main(["log", "--db", str(log)]) == 0
    told = capsys.readouterr().out
    assert f"  {said} (by {ME.removeprefix('operator:')})\n" in told
    assert "by the operator" not in told


def test_a_log_of_an_earlier_version_tells_its_cancellations_as_this_one_does(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands wrote the operator as the reason; another name there is the reason that an operator gave."""
    with_name = FleetLog(log.with_name("y.db"), TaskPlan("T1", "do it"), TaskPlan("T2", "do it"))
    with_name.happens("board", "task:T1", task.Cancelled("cancelled by mo"), actor="operator:mo")
    with_name.happens("board", "task:T2", task.Cancelled("cancelled by sales"), actor="operator:mo")
    assert main(["log", "--db", str(with_name.path)]) == 0
    told = capsys.readouterr().out
    assert "  cancelled (by mo)\n" in told
    assert "  cancelled: cancelled by sales (by mo)\n" in told


def test_a_long_reason_is_wrapped_on_a_terminal_and_keeps_every_word() -> None:
    """No word is cut, and no line is wider than the terminal."""
    lines = story_lines(News(0, "a-task-with-a-long-name-of-its-own", f"attempt 1 failed: {CAUSE}", "ann"), 80)
    assert all(len(each) <= 80 for each in lines)
    assert " ".join(" ".join(lines).split()).endswith(f"attempt 1 failed: {CAUSE} (by ann)")
    assert len(lines) > 10


def test_the_text_of_an_agent_cannot_paint_or_move_the_cursor() -> None:
    """Control characters are left out."""
    (line,) = story_lines(News(0, "T1", "attempt 1 failed: \x1b[2Jall is well"), None)
    assert "\x1b" not in line


def luminance(colour: int) -> float:
    """Return the relative luminance of one of the 216 colours of a terminal, as WCAG 2.1 defines it."""
    levels = (0, 95, 135, 175, 215, 255)
    parts = (levels[(colour - 16) // 36], levels[(colour - 16) // 6 % 6], levels[(colour - 16) % 6])
    red, green, blue = (
        each / 255 / 12.92 if each / 255 <= 0.04045 else ((each / 255 + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mood", OF_MOODS)
def test_every_colour_is_readable_on_light_and_on_dark(mood: Mood) -> None:
    """WCAG asks for 3 of large text; each colour has more, on white as on black."""
    here = luminance(OF_MOODS[mood]) + 0.05
    assert min(1.05 / here, here / 0.05) >= 3.5


def test_a_plain_line_has_no_colour_and_without_colours_no_line_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of sixteen colours has its own shades."""
    monkeypatch.setenv("TERM", "xterm-256color")
    assert painted("x", Mood.FAILED, colours=True) == "\x1b[38;5;160mx\x1b[0m"
    assert painted("x", Mood.PLAIN, colours=True) == painted("x", Mood.FAILED, colours=False) == "x"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM", raising=False)
    assert painted("x", Mood.WAITS, colours=True) == "\x1b[33mx\x1b[0m"
