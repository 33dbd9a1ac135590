"""The shim's loop: what it waits for, and what it does about it.

The agent *runs* until it dies or is *asked* to end: by an order, the time-out, the lease, SIGTERM to the shim. Who is
asked gets SIGTERM, and SIGKILL when the grace is over. A dead agent's descendants are asked in the same way (for a
second at most, if the agent died by itself), then killed over and over until the kernel knows of no child. The first
reason to end is the outcome, except that "killed" replaces "ended".
"""

# Relative imports: see __main__.
# ruff: noqa: TID252
import os
import select
import time

from . import durable, proc
from .agent import Agent, Family
from .output import OutputLog

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the cost of importing typing
if TYPE_CHECKING:
    import resource
    import signal
    from typing import Any
else:
    import _signal as signal  # the same without its enumerations, whose import costs more than all else here

_READ_BYTES = 64 * 1024
_DRAIN_LIMIT_BYTES = 16 * 1024 * 1024
_MESSAGE_LIMIT_BYTES = 4096
_LEFTOVER_GRACE_MS = 1_000
_SWEEP_MS = 50  # how long until a look at those whose death sends the shim no signal
_CLOCK_CHECK_MS = 5_000  # poll sleeps by a clock that stops with the machine; leases go by one that does not


class Spec:
    """What to run, as read from ``spec.json``. Raises KeyError, TypeError or ValueError when it is not all there.

    The file has the names of the agent's variables; ``environment`` is what standard input says of their values.
    """

    def __init__(self, text: str, environment: "dict[str, str]") -> None:
        told: Any = durable.decode(text)
        self.argv = [str(argument) for argument in told["argv"]]
        self.cwd = str(told["cwd"])
        self.environment = environment
        if missing := [name for name in told["env"] if name not in environment]:
            raise ValueError(f"no value is known of {missing}")
        self.generation = told["generation"]
        self.timeout_ms = None if told["timeout_ms"] is None else int(told["timeout_ms"])
        self.grace_ms = int(told["grace_ms"])
        self.output_limit_bytes = int(told["output_limit_bytes"])
        self.lease_until_boot_ms = None if told["lease_until_boot_ms"] is None else int(told["lease_until_boot_ms"])
        if not self.argv:
            raise ValueError("argv is empty")


class Supervisor:
    """One agent from the opening of the gate to the death of the last descendant."""

    def __init__(self, spec: Spec, agent: Agent, output: OutputLog, control_fd: int, wakeup_fd: int) -> None:
        self._spec = spec
        self._agent = agent
        self._family = Family(agent.pid)
        self._output = output
        self._control_fd = control_fd
        self._heard = b""
        self._outcome = ""
        self._lease_until_boot_ms = spec.lease_until_boot_ms
        self._timeout_at_ms = None if spec.timeout_ms is None else proc.monotonic_ms() + spec.timeout_ms
        self._kill_at_ms: int | None = None
        self._interrupted: set[str] = set()
        self._wakeup_fd = wakeup_fd
        self._poll = select.poll()
        for fd in (agent.output_fd, control_fd, wakeup_fd):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> "dict[str, Any]":
        """Supervise until nobody is left, and return what ``exit.json`` is to say."""
        while not self._all_dead():
            for fd, _ in self._poll.poll(self._idle_ms()):
                if fd == self._agent.output_fd:
                    self._read_output()
                elif fd == self._control_fd:
                    self._read_orders()
                else:
                    self._read_signals()
            self._look_at_clocks()
        status, usage = self._family.bury()
        while not self._family.extinct():
            self._family.kill_rest()
            time.sleep(_SWEEP_MS / 1000)
        self._drain()
        return self._report(status, usage)

    def _all_dead(self) -> bool:
        self._family.look()
        if not self._family.agent_dead:
            return False
        if self._kill_at_ms is None and not self._family.rest_is_dead():
            self._ask(min(self._spec.grace_ms, _LEFTOVER_GRACE_MS))
        if self._killing():
            self._family.kill_rest()
        return self._family.rest_is_dead()

    def _killing(self) -> bool:
        return self._kill_at_ms is not None and proc.monotonic_ms() >= self._kill_at_ms

    def _idle_ms(self) -> int | None:
        """Say how long nothing will happen by itself; None for ever."""
        if self._killing() or (self._family.agent_dead and not proc.LINUX):
            return _SWEEP_MS
        waits_ms: list[int] = []
        if self._kill_at_ms is not None:
            waits_ms.append(self._kill_at_ms - proc.monotonic_ms())
        elif self._timeout_at_ms is not None:
            waits_ms.append(self._timeout_at_ms - proc.monotonic_ms())
        if self._kill_at_ms is None and self._lease_until_boot_ms is not None:
            waits_ms.append(min(self._lease_until_boot_ms - proc.boot_ms(), _CLOCK_CHECK_MS))
        return max(0, min(waits_ms)) if waits_ms else None

    def _look_at_clocks(self) -> None:
        if self._killing():
            self._family.kill_rest()
        elif self._timeout_at_ms is not None and proc.monotonic_ms() >= self._timeout_at_ms:
            self._end("timeout", self._spec.grace_ms)
        elif self._lease_until_boot_ms is not None and proc.boot_ms() >= self._lease_until_boot_ms:
            self._end("lease-expired", self._spec.grace_ms)

    def _end(self, outcome: str, grace_ms: int) -> None:
        """Begin to end, for a reason; later reasons can only shorten the grace."""
        self._family.look()
        if not self._family.agent_dead:
            self._outcome = self._outcome or outcome
        self._timeout_at_ms = self._lease_until_boot_ms = None
        self._ask(grace_ms)

    def _ask(self, grace_ms: int) -> None:
        kill_at_ms = proc.monotonic_ms() + max(grace_ms, 0)
        if self._kill_at_ms is None:
            self._kill_at_ms = kill_at_ms
            self._family.signal(signal.SIGTERM)
            self._family.signal(signal.SIGCONT)  # a stopped process hears nothing but SIGKILL
        self._kill_at_ms = min(self._kill_at_ms, kill_at_ms)

    def _interrupt(self, wish: str) -> None:
        """Signal the agent alone, once for each wish: a runner that comes back may say again what it has said."""
        self._family.look()
        if self._family.agent_dead or self._kill_at_ms is not None or wish in self._interrupted:
            return
        self._interrupted.add(wish)
        self._family.interrupt()

    def _kill(self) -> None:
        self._family.look()
        if not self._family.agent_dead and self._outcome in ("", "ended"):
            self._outcome = "killed"
        self._timeout_at_ms = self._lease_until_boot_ms = None
        self._kill_at_ms = proc.monotonic_ms()

    def _read_output(self) -> None:
        data = self._read(self._agent.output_fd)
        if data == b"":
            self._poll.unregister(self._agent.output_fd)  # everybody closed it; that they live on is their affair
        elif data is not None:
            self._output.write(data)

    def _drain(self) -> None:
        """Take what is left in the pipe, not waiting for others to close it, and not for ever if somebody floods it."""
        left_bytes = _DRAIN_LIMIT_BYTES
        while left_bytes > 0 and (data := self._read(self._agent.output_fd)):
            self._output.write(data)
            left_bytes -= len(data)

    def _read_orders(self) -> None:
        *lines, self._heard = (self._heard + (self._read(self._control_fd) or b"")).split(b"\n")
        if len(self._heard) > _MESSAGE_LIMIT_BYTES:
            self._heard = b""
        for line in lines:
            try:
                self._obey(durable.decode(line.decode("utf-8")))
            except ValueError:
                continue  # whoever writes nonsense is not helped by a shim that stops

    def _obey(self, order: "durable.Json") -> None:
        if not isinstance(order, dict):
            return
        grace_ms, until_boot_ms = order.get("end"), order.get("lease_until_boot_ms")
        if order.get("kill") is True:
            self._kill()
        elif type(grace_ms) is int:
            self._end("ended", grace_ms)
        elif isinstance(wish := order.get("interrupt"), str):
            self._interrupt(wish)
        elif type(until_boot_ms) is int and self._kill_at_ms is None:
            self._lease_until_boot_ms = max(self._lease_until_boot_ms or 0, until_boot_ms)

    def _read_signals(self) -> None:
        """SIGCHLD needs no more than to have woken us."""
        if signal.SIGTERM in (self._read(self._wakeup_fd) or b""):
            self._end("ended", self._spec.grace_ms)

    @staticmethod
    def _read(fd: int) -> bytes | None:
        """Read what there is; None if there is nothing now, empty if there will be nothing more."""
        try:
            return os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return None

    def abandon(self) -> None:
        """Kill what can be reached: the last thing to do for a shim that is broken."""
        self._family.kill_rest()

    def _report(self, status: int, usage: "resource.struct_rusage") -> "dict[str, Any]":
        failure = self._agent.failure()
        code = os.waitstatus_to_exitcode(status)
        if failure:
            self._outcome = "spawn-failed"
        elif not self._outcome:
            self._outcome = "exited" if code >= 0 else "signalled"
        used = {"utime_ms": int(usage.ru_utime * 1000), "stime_ms": int(usage.ru_stime * 1000)}
        return {
            "outcome": self._outcome,
            "code": code if code >= 0 and not failure else None,
            "signal": -code if code < 0 else None,
            "message": failure or self._explained(code),
            "escaped": self._family.escaped,
            "usage": {**used, "maxrss_kib": usage.ru_maxrss if proc.LINUX else usage.ru_maxrss // 1024},
        }

    def _explained(self, code: int) -> str:
        """Say in words what ``exit.json`` says in numbers; nothing of an agent that exited with 0."""
        reasons = {
            "timeout": f"it was still running after {self._spec.timeout_ms} ms",
            "lease-expired": "nobody renewed its lease",
            "ended": "it was asked to end",
            "killed": "it was to be killed at once",
        }
        reason = reasons.get(self._outcome, "")
        if code == -signal.SIGKILL and self._outcome in ("timeout", "lease-expired", "ended") and self._killing():
            return f"{reason}; it did not end on TERM; killed"
        how = f"exit status {code}" if code >= 0 else f"{signal.strsignal(-code)} (signal {-code})"
        return "; ".join(part for part in (reason, how if reason or code != 0 else "") if part)
