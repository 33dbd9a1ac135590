"""Printing through an outlet never waits, and what a reader gets is in order and says what is missing."""

import os
import re
import sys
from collections.abc import Iterator

import pytest

from lifefold.interpreters.cli import outlet
from lifefold.interpreters.cli.outlet import Outlet
from stuck_pipe import StuckPipe


@pytest.fixture
def pipe() -> Iterator[StuckPipe]:
    pipe = StuckPipe()
    yield pipe
    pipe.close()


def test_printing_to_a_reader_that_stalls_returns_and_loses_nothing(pipe: StuckPipe) -> None:
    """Whatever was printed meanwhile is there, in order, when the reader comes back."""
    out = Outlet(pipe.stream)
    for number in range(1_000):
        print(number, file=out)
    assert not out.idle
    assert pipe.read_to("999\n") == [str(number) for number in range(1_000)]
    assert out.finish(60)


def test_a_reader_that_stalls_too_long_is_told_how_much_is_missing_and_where(pipe: StuckPipe) -> None:
    """The oldest lines are dropped; every line is either there, in its place, or counted."""
    out = Outlet(pipe.stream, limit=10)
    for number in range(100):
        print(number, file=out)
    known = missed = 0
    for line in pipe.read_to("99\n"):
        if "missing" in line:
            (missing,) = map(int, re.findall(r"\d+", line))
            missed += missing
        else:
            assert int(line) == known + missed
            known += 1
    assert known + missed == 100
    assert missed > 80


def test_a_reader_that_has_taken_everything_is_waited_for_again(pipe: StuckPipe) -> None:
    """``idle`` says whether what is printed now is read at once."""
    pipe.read_some()
    out = Outlet(pipe.stream)
    assert out.idle
    print("one", file=out)
    assert pipe.read_to("one\n") == ["one"]
    out.finish(60)
    assert out.idle


def test_a_message_of_several_lines_is_whole_where_errors_go_to_the_same_file_as_the_output(pipe: StuckPipe) -> None:
    """Each of two outlets has a thread; whichever writes first, no line begins within a line of the other."""
    out, errors = Outlet(pipe.stream), Outlet(pipe.stream)
    for number in range(300):
        print(f"out {number}\nout again", file=out)
        print(f"error {number}\nerror again", file=errors)
    pipe.read_some()  # the rest fits into the pipe
    assert out.finish(60)
    assert errors.finish(60)
    pipe.stream.write("the end\n")
    pipe.stream.flush()
    lines = pipe.read_to("the end\n")
    assert {re.sub(r"\d+", "N", line) for line in lines} == {"out N", "out again", "error N", "error again", "the end"}


def test_what_is_left_in_the_end_is_written_if_the_reader_takes_it_in_time(pipe: StuckPipe) -> None:
    """Otherwise it is given up, after a time in which the reader has taken nothing at all."""
    out = Outlet(pipe.stream)
    print("one\ntwo", file=out)
    assert not out.finish(0.01)
    assert pipe.read_to("two\n") == ["one", "two"]
    assert out.finish(60)


def test_an_outlet_without_a_reader_swallows_everything(pipe: StuckPipe) -> None:
    """The terminal was closed, the pipe was cut: printing goes on to do no harm."""
    out = Outlet(pipe.stream)
    print("one", file=out)
    pipe.leave()
    print("two", file=out)
    assert out.finish(60)
    print("three", file=out)
    assert not out.idle


def test_a_terminal_that_another_program_has_made_non_blocking_is_written_to_all_the_same(pipe: StuckPipe) -> None:
    """Programs that share it do that, and do not put it back."""
    os.set_blocking(pipe.stream.fileno(), False)
    out = Outlet(pipe.stream)
    print("y" * 100_000, file=out)
    print("end", file=out)
    assert pipe.read_to("end\n") == ["y" * 100_000, "end"]
    assert out.finish(60)


def test_what_the_encoding_cannot_express_is_written_as_escapes(pipe: StuckPipe) -> None:
    """No text that an agent says can stop the fleet."""
    out = Outlet(pipe.stream)
    print("f\xfcr \udcff", file=out)
    assert pipe.read_to("\n") == [r"f\xfcr \udcff"]
    assert out.finish(60)


def test_output_and_errors_go_through_outlets_for_a_while(capfd: pytest.CaptureFixture[str]) -> None:
    """What was printed before comes before, and afterwards everything is as it was."""
    streams = sys.stdout, sys.stderr
    sys.stdout.write("before\n")
    with outlet.opened() as out:
        sys.stdout.write("within\n")
        sys.stderr.write("error\n")
        assert sys.stdout is out
    sys.stdout.write("after\n")
    assert (sys.stdout, sys.stderr) == streams
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("before\nwithin\nafter\n", "error\n")


def test_before_a_question_all_that_was_printed_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    """Otherwise an operator would be asked about something that is not shown yet."""
    with outlet.opened():
        for number in range(500):
            sys.stdout.write(f"{number}\n")
        outlet.wait_until_written()
        assert capfd.readouterr().out.endswith("499\n")
    outlet.wait_until_written()  # nothing is to be waited for where nothing is behind an outlet
