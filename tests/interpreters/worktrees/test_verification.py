"""Verification: a true verdict, a useful reason, and no remaining process."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import pytest

from lifefold.interpreters.processes import SessionSpec, launch
from lifefold.interpreters.worktrees import verification
from lifefold.interpreters.worktrees.verification import verify

pytestmark = pytest.mark.anyio

PATIENCE_S = 60
"""How long a test waits for what is to happen at once. It is never waited for in vain when all is well."""

SOON_MS = 600_000
"""A time limit that no command of these tests reaches."""

UP_MS = 5_000
"""A time limit that is reached, by commands that have long been at work then. It is waited for."""

once = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""For what takes its time, and has it from the shim: no other back end has a part in it."""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "GRACE_MS", 200)


@dataclass
class Witness:
    """A named pipe that shows its writers: it ends with the last process that has opened it for writing."""

    path: Path
    descriptor: int

    async def testimony(self) -> bytes:
        """Return all that was written, once no writer is left."""
        heard = b""
        with anyio.fail_after(PATIENCE_S):
            while True:
                await anyio.wait_readable(self.descriptor)
                chunk = os.read(self.descriptor, 1024)
                if not chunk:
                    return heard
                heard += chunk

    async def first_word(self) -> bytes:
        """Wait until a process has written."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                await anyio.wait_readable(self.descriptor)
                with suppress(BlockingIOError):  # one writer had closed it, and the next has said nothing yet
                    return os.read(self.descriptor, 1024)


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    path = tmp_path / "witness"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield Witness(path, descriptor)
    os.close(descriptor)


_NUMBERS = count(1)


async def judge(
    folder: Path, commands: Sequence[Sequence[str]], *, timeout_ms: int, env: Mapping[str, str] | None = None
) -> str | None:
    """Verify with records of their own beside the folder."""
    records = folder.parent / f"records-{next(_NUMBERS)}"
    return await verify(folder, commands, timeout_ms=timeout_ms, records=records, env=env)


def shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


def children() -> set[str]:
    """Return the processes that this one has started and not reaped."""
    return {each for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()}


@pytest.fixture
def others() -> set[str]:
    """The children that earlier tests in this process have left."""
    return children()


async def test_work_is_verified_when_every_command_exits_with_0(tmp_path: Path, others: set[str]) -> None:
    """None is returned only after all commands have run, in the folder."""
    commands = [shell("echo one > a"), ("test", "-f", "a"), shell("cat a > b")]
    assert await judge(tmp_path, commands, timeout_ms=SOON_MS) is None
    assert (tmp_path / "b").read_text() == "one\n"
    assert children() <= others


async def test_no_commands_object_to_nothing(tmp_path: Path) -> None:
    """Without commands there is no objection."""
    assert await judge(tmp_path, [], timeout_ms=SOON_MS) is None


async def test_nothing_is_run_through_a_link_that_stands_where_the_place_was(tmp_path: Path) -> None:
    """The agent has replaced its place: what is elsewhere is not its work, and not to be touched."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "place").symlink_to(tmp_path / "elsewhere")
    reason = await verify(
        tmp_path / "place", (("touch", "ran"),), timeout_ms=SOON_MS, records=tmp_path / "records", env=None
    )
    assert reason is not None
    assert "a link or a file stands where the place to work was" in reason
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_the_first_objection_ends_verification(tmp_path: Path) -> None:
    """The reason names the command, its status and its output; later commands do not run."""
    reason = await judge(tmp_path, [shell("echo seen; echo bad >&2; exit 3"), ("touch", "ran")], timeout_ms=SOON_MS)
    assert reason is not None
    assert "sh -c" in reason
    assert "exited with status 3" in reason
    assert reason.endswith("seen\nbad")
    assert not (tmp_path / "ran").exists()


async def test_no_shell_reads_a_command(tmp_path: Path) -> None:
    """What a shell would expand reaches the program as it was written."""
    assert await judge(tmp_path, [("test", "$HOME;*", "=", "$HOME;*")], timeout_ms=SOON_MS) is None


async def test_a_signal_is_named(tmp_path: Path) -> None:
    """A command that was killed is not said to have exited."""
    reason = await judge(tmp_path, [shell("kill -SEGV $$")], timeout_ms=SOON_MS)
    assert reason is not None
    assert "was ended by SIGSEGV" in reason
    assert "It printed nothing" in reason


async def test_what_cannot_be_started_is_an_objection_that_says_why(tmp_path: Path) -> None:
    """A missing program, a missing folder, a file that is not executable, an empty command, an impossible argument."""
    (tmp_path / "data").write_text("no program")
    for folder, command, expected in (
        (tmp_path, ("no-such-program", "x"), "not found"),
        (tmp_path / "gone", ("true",), "gone"),
        (tmp_path, ("./data",), "permission denied"),
        (tmp_path, (), "it is empty"),
        (tmp_path, ("echo", "a\0b"), "NUL"),
    ):
        reason = await judge(folder, [command], timeout_ms=SOON_MS)
        assert reason is not None
        assert "could not be started" in reason
        assert expected in reason


async def test_the_environment_given_is_the_whole_environment(tmp_path: Path) -> None:
    """Nothing is inherited beside what was given; without any, ours is."""
    given = {"PATH": os.environ["PATH"], "ONLY": "this"}
    command = shell('test "$ONLY" = this && test -z "$INHERITED"')
    os.environ["INHERITED"] = "yes"
    try:
        assert await judge(tmp_path, [command], timeout_ms=SOON_MS, env=given) is None
        assert await judge(tmp_path, [shell('test "$INHERITED" = yes')], timeout_ms=SOON_MS) is None
    finally:
        del os.environ["INHERITED"]


async def test_a_reason_quotes_the_last_20_lines(tmp_path: Path) -> None:
    """Of a long output the end is quoted, where the errors are."""
    reason = await judge(tmp_path, [shell("seq 1 1000; exit 1")], timeout_ms=SOON_MS)
    assert reason is not None
    assert reason.splitlines()[1:] == [str(number) for number in range(981, 1001)]


async def test_a_flood_of_output_neither_blocks_a_command_nor_fills_the_reason(tmp_path: Path) -> None:
    """Megabytes on one line are read to the end and cut to 2000 characters."""
    flood = "import sys; sys.stdout.write('x' * 9_000_000); sys.exit(1)"
    reason = await judge(tmp_path, [(sys.executable, "-c", flood)], timeout_ms=SOON_MS)
    assert reason is not None
    assert reason.splitlines()[-1] == "x" * 2000
    assert len(reason) < 2500


async def test_a_reason_can_be_passed_on_as_an_argument(tmp_path: Path) -> None:
    """Terminal sequences, NUL bytes and broken encodings in the output do not reach the next prompt."""
    reason = await judge(tmp_path, [shell(r"printf '\033[31mred\033[0m\000\377\tend\r\n'; exit 1")], timeout_ms=SOON_MS)
    assert reason is not None
    assert reason.endswith("red�\tend")


@once
async def test_a_command_that_takes_too_long_is_ended_with_all_its_descendants(
    tmp_path: Path, witness: Witness, others: set[str]
) -> None:
    """Time being up, also grandchildren that ignore TERM are gone, and the reason says so."""
    stubborn = f"exec 3>{witness.path}; trap '' TERM; echo started >&3; (while :; do sleep 1000; done) & cat /dev/zero"
    reason = await judge(tmp_path, [shell(f"{stubborn} >/dev/null")], timeout_ms=UP_MS)
    assert reason is not None
    assert "did not end within 5 s" in reason
    assert await witness.testimony() == b"started\n"
    assert children() <= others


@once
async def test_a_command_whose_time_is_up_may_end_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM comes first: a command can clean up, and what it then says is quoted."""
    monkeypatch.setattr(verification, "GRACE_MS", SOON_MS)
    script = "trap 'echo cleaned up; exit 0' TERM; echo ready; sleep 1000 & wait"
    reason = await judge(tmp_path, [shell(script)], timeout_ms=UP_MS)
    assert reason is not None
    assert reason.endswith("ready\ncleaned up")


async def test_what_a_command_leaves_in_the_background_ends_with_it(tmp_path: Path, witness: Witness) -> None:
    """A server that a test script forgot does not outlive the verdict, and does not change it."""
    script = f"(exec 3>{witness.path}; trap '' TERM; echo started >&3; while :; do sleep 1000; done) & read word < go"
    os.mkfifo(tmp_path / "go")
    reasons: list[str | None] = []

    async def verified() -> None:
        reasons.append(await judge(tmp_path, [shell(script)], timeout_ms=SOON_MS))

    async with anyio.create_task_group() as group:
        group.start_soon(verified)
        assert await witness.first_word() == b"started\n"
        async with await anyio.open_file(tmp_path / "go", "w") as go:
            await go.write("now\n")
    assert reasons == [None]
    assert await witness.testimony() == b""


async def test_a_descendant_that_left_the_group_ends_with_the_command(tmp_path: Path, witness: Witness) -> None:
    """One that made a session of its own, and holds the output open, is found (on Linux) and ended."""
    os.mkfifo(tmp_path / "left")
    opened = f"w = open({str(witness.path)!r}, 'w'); open('left', 'w').close()"
    escape = f"import os, time; os.setsid(); {opened}; time.sleep(1000)"
    script = f'{sys.executable} -c "{escape}" & read word < left; exit 4'
    reason = await judge(tmp_path, [shell(script)], timeout_ms=SOON_MS)
    assert reason is not None
    assert "exited with status 4" in reason
    assert await witness.testimony() == b""


async def test_what_a_crashed_runner_has_left_is_ended_before_the_commands_run_again(
    tmp_path: Path, witness: Witness
) -> None:
    """A verification that is begun again finds no earlier one at work in the same place."""
    records = tmp_path / "records"
    script = f"exec 3>{witness.path}; echo started >&3; sleep 1000"
    spec = SessionSpec(argv=shell(script), cwd=str(tmp_path), env=dict(os.environ), generation=0)
    crashed = await launch(records / "1", spec)
    assert await witness.first_word() == b"started\n"
    assert await verify(tmp_path, [("true",)], timeout_ms=SOON_MS, records=records) is None
    assert await witness.testimony() == b""
    assert (await crashed.wait()).outcome == "killed"


async def test_a_cancelled_verification_leaves_nothing_behind(
    tmp_path: Path, witness: Witness, others: set[str]
) -> None:
    """Cancellation ends the whole group, also what ignores TERM, before it goes on."""
    script = f"exec 3>{witness.path}; trap '' TERM; echo started >&3; (sleep 1000) & sleep 1000"
    async with anyio.create_task_group() as group:
        group.start_soon(partial(judge, tmp_path, [shell(script)], timeout_ms=SOON_MS))
        assert await witness.first_word() == b"started\n"
        group.cancel_scope.cancel()
    assert children() <= others
    assert await witness.testimony() == b""


async def test_commands_of_many_agents_run_at_the_same_time(tmp_path: Path, witness: Witness) -> None:
    """Fifty verifications that wait for each other all come to their end: none occupies what another one needs."""
    agents, heard, go = 50, b"", -1
    os.mkfifo(tmp_path / "go")
    reasons: list[str | None] = []

    async def verified() -> None:
        command = shell(f"echo x > {witness.path}; : < go")
        reasons.append(await judge(tmp_path, [command], timeout_ms=SOON_MS))

    async with anyio.create_task_group() as group:
        for _ in range(agents):
            group.start_soon(verified)
        while heard.count(b"x") < agents:
            heard += await witness.first_word()
        go = os.open(tmp_path / "go", os.O_RDWR)
    os.close(go)
    assert reasons == [None] * agents
