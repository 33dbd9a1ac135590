"""The agent's process: forked, held at a gate, released; and its death, with that of all its descendants."""

# Relative imports: see __main__.
# ruff: noqa: TID252
import errno
import os

from . import proc

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the cost of importing typing
if TYPE_CHECKING:
    import resource
    import signal
    from collections.abc import Callable
    from typing import NoReturn
else:
    import _signal as signal  # the same without enumerations, whose import costs more than all others here

_GO = b"!"
_ESCAPED_LIMIT = 100
_REASON_LIMIT_BYTES = 4096
_EXEC_FAILED = 127


class Agent:
    """A forked process, the leader of its own group. Its command does not run before ``go``.

    ``output_fd`` is the reading end of its standard output and error, and does not block.
    """

    def __init__(self, argv: list[str], cwd: str, environment: dict[str, str]) -> None:
        gate_fd, self._gate_fd = os.pipe()
        self._failure_fd, failure_fd = os.pipe()
        self.output_fd, output_fd = os.pipe()
        os.set_blocking(self.output_fd, False)
        os.set_blocking(self._failure_fd, False)
        shim_pid = os.getpid()
        # A signal right after the fork would run the shim's handlers in the child, which report it to the shim.
        before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._gate_fd)
            _become(argv, cwd, environment, shim_pid, gate_fd, output_fd, failure_fd)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _quietly(os.setpgid, self.pid, self.pid)  # the child does the same; the first call counts
        for fd in (gate_fd, output_fd, failure_fd):
            os.close(fd)

    def go(self) -> None:
        """Open the gate, so that the command runs. If the agent was killed meanwhile, nothing happens."""
        try:
            os.write(self._gate_fd, _GO)
        except BrokenPipeError:
            pass
        finally:
            os.close(self._gate_fd)

    def abort(self) -> None:
        """Kill and reap the agent before its gate is opened."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def failure(self) -> str:
        """Return why the command could not be started; empty if it was started or may start later."""
        try:
            return os.read(self._failure_fd, _REASON_LIMIT_BYTES).decode("utf-8", "replace")
        except BlockingIOError:
            return ""


def _become(  # noqa: PLR0913, PLR0917 - a child needs all of these
    argv: list[str], cwd: str, environment: dict[str, str], shim_pid: int, gate_fd: int, output_fd: int, failure_fd: int
) -> "NoReturn":
    """Turn the forked child into the agent. Never returns, not even after an error."""
    doing = "cannot prepare the process"
    try:
        proc.die_with_parent(signal.SIGKILL)
        os.setpgid(0, 0)
        if os.getppid() != shim_pid or os.read(gate_fd, 1) != _GO:
            os._exit(_EXEC_FAILED)
        _forget_signals()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        doing = f"cannot enter the working directory {cwd!r}"
        os.chdir(cwd)
        doing = f"cannot run {argv[0]!r}"
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell, on purpose
    except BaseException as error:  # noqa: BLE001 - every error must end here, and not in the shim's loop
        os.write(failure_fd, f"{doing}: {_explained(error)}".encode("utf-8", "replace")[:_REASON_LIMIT_BYTES])
    finally:
        os._exit(_EXEC_FAILED)


def _forget_signals() -> None:
    """Reset and unblock every signal: the agent would inherit signals that are ignored or blocked here."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _explained(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "not found (a script is also not found when its interpreter is missing)"
    if isinstance(error, PermissionError):
        return "permission denied: is it executable?"
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        return "not a program: a script needs a first line that names its interpreter"
    return str(error)


class Family:
    """The agent and all its descendants: noticing deaths, and killing the rest for certain.

    On Linux the dead agent stays a zombie until ``reap_agent``. Until then its pid and its group id are not reused.
    Elsewhere it is reaped when it dies, and descendants outside the group are not found. ``escaped`` are the first
    hundred pids outside the group, which were signalled one by one.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.agent_dead = False
        self.escaped: list[int] = []
        self._reaped: tuple[int, resource.struct_rusage] | None = None

    def look(self) -> None:
        """Reap dead orphans, and notice the agent's death."""
        if not proc.LINUX:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG) if not self.agent_dead else (0, 0, None)
            if pid != 0 and usage is not None:
                self.agent_dead, self._reaped = True, (status, usage)
            return
        while (
            not self.agent_dead and (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None
        ):
            if dead.si_pid == self.pid:
                self.agent_dead = True
            else:
                os.waitpid(dead.si_pid, 0)

    def signal(self, number: int) -> None:
        """Signal the group, and the children outside it: adopted orphans, or an agent that has left its group."""
        if self._reaped is None or not proc.LINUX:
            _quietly(os.killpg, self.pid, number)
        for child, pgid in self._strangers():
            if pgid != self.pid and len(self.escaped) < _ESCAPED_LIMIT and child not in self.escaped:
                self.escaped.append(child)
            _quietly(os.kill, child, number)

    def interrupt(self) -> None:
        """Signal the agent's own process. It is an unreaped child, so its pid is not reused."""
        _quietly(os.kill, self.pid, signal.SIGINT)
        _quietly(os.kill, self.pid, signal.SIGCONT)  # a stopped process does not handle signals

    def kill_rest(self) -> None:
        """Kill the group and all children, once. Grandchildren then become children, so repetition reaches all."""
        self.signal(signal.SIGKILL)

    def rest_is_dead(self) -> bool:
        """Reap dead children, and tell whether only the dead agent remains."""
        if not proc.LINUX:
            return _group_is_gone(self.pid)
        alone = True
        for child in proc.children():
            if child != self.pid and os.waitpid(child, os.WNOHANG)[0] == 0:
                alone = False
        return alone

    def reap_agent(self) -> "tuple[int, resource.struct_rusage]":
        """Reap the agent, if it was not reaped yet; return its status as of ``wait``, and its usage."""
        if self._reaped is None:
            _, status, usage = os.wait4(self.pid, 0)
            self._reaped = status, usage
        return self._reaped

    def extinct(self) -> bool:
        """Tell whether the kernel knows no child any more; only meaningful after ``reap_agent``."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return True
        return False

    def _strangers(self) -> list[tuple[int, int]]:
        """List the living children outside the group, each with its group. They are unreaped: no pid is reused.

        After the agent was reaped, all children count: its group's number may be reused, and is not signalled.
        """
        if not proc.LINUX:
            return []
        found = [(pid, proc.stat(pid)) for pid in proc.children()]
        inside = {self.pid if self._reaped is None else 0, -1, 0}  # a process that the kernel is releasing has no group
        living = [(pid, stat.pgid) for pid, stat in found if stat is not None and not stat.dead]
        return [(pid, pgid) for pid, pgid in living if pgid not in inside]


def _quietly(do: "Callable[[int, int], None]", target: int, number: int) -> None:
    """Call a function for a process that may be dead, or out of reach because it has changed its user."""
    try:
        do(target, number)
    except (ProcessLookupError, PermissionError):
        return


def _group_is_gone(pgid: int) -> bool:
    try:
        os.killpg(pgid, 0)
    except (ProcessLookupError, PermissionError):  # macOS raises the latter for a group of zombies
        return True
    return False
