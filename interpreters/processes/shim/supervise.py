"""The shim's loop: output, orders, signals and deadlines of one session.

The agent runs until it dies or is asked to end: by an order, the timeout, the lease, or SIGTERM to the shim. It then
gets SIGTERM, and SIGKILL when the grace is over. Descendants of a dead agent are asked to end in the same way. If the
agent died by itself, their grace is a second at most. Then they are killed repeatedly, until the kernel knows no child.
The first reason to end is the outcome, except that "killed" replaces "ended".
"""

# Relative imports: see __main__.
# ruff: noqa: TID252
import os
import select
import time

from . import durable, proc
from .agent import Agent, Family
from .fence import Fence
from .output import OutputLog

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the cost of importing typing
if TYPE_CHECKING:
    import resource
    import signal
    from typing import Any
else:
    import _signal as signal  # the same without enumerations, whose import costs more than all others here

_READ_BYTES = 64 * 1024
_DRAIN_LIMIT_BYTES = 16 * 1024 * 1024
_MESSAGE_LIMIT_BYTES = 4096
_LEFTOVER_GRACE_MS = 1_000
_SWEEP_MS = 50  # the pause between checks of processes whose death sends the shim no signal
_CLOCK_CHECK_MS = 5_000  # poll uses a clock that stops during a suspension; leases use one that does not


class Spec:
    """The command, as read from ``spec.json``. Raises KeyError, TypeError or ValueError if it is incomplete.

    The file has the names of the agent's variables; ``environment`` has their values, from standard input.
    """

    def __init__(self, text: str, environment: "dict[str, str]") -> None:
        fields: Any = durable.decode(text)
        self.argv = [str(argument) for argument in fields["argv"]]
        self.cwd = str(fields["cwd"])
        self.environment = environment
        if missing := [name for name in fields["env"] if name not in environment]:
            raise ValueError(f"the variables {missing} have no value")
        self.generation = fields["generation"]
        self.timeout_ms = None if fields["timeout_ms"] is None else int(fields["timeout_ms"])
        self.grace_ms = int(fields["grace_ms"])
        self.output_limit_bytes = int(fields["output_limit_bytes"])
        self.lease_until_boot_ms = None if fields["lease_until_boot_ms"] is None else int(fields["lease_until_boot_ms"])
        fence: Any = fields.get("fence")
        self.fence_until_boot_ms = None if fence is None else int(fence["until_boot_ms"])
        self.fence_grace_ms = 0 if fence is None else int(fence["grace_ms"])
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
        self._partial = b""
        self._outcome = ""
        self._lease_until_boot_ms = spec.lease_until_boot_ms
        self._fence = Fence(spec.fence_until_boot_ms, spec.fence_grace_ms)
        self._timeout_at_ms = None if spec.timeout_ms is None else proc.monotonic_ms() + spec.timeout_ms
        self._held_ms: int | None = None  # what was left of the time limit when it was held
        self._kill_at_ms: int | None = None
        self._interrupted: set[str] = set()
        self._wakeup_fd = wakeup_fd
        self._poll = select.poll()
        for fd in (agent.output_fd, control_fd, wakeup_fd):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> "dict[str, Any]":
        """Supervise until no process remains, and return the contents of ``exit.json``."""
        while not self._all_dead():
            for fd, _ in self._poll.poll(self._idle_ms()):
                if fd == self._agent.output_fd:
                    self._read_output()
                elif fd == self._control_fd:
                    self._read_orders()
                else:
                    self._read_signals()
            self._look_at_clocks()
        status, usage = self._family.reap_agent()
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
            self._request_end(min(self._spec.grace_ms, _LEFTOVER_GRACE_MS))
        if self._killing():
            self._family.kill_rest()
        return self._family.rest_is_dead()

    def _killing(self) -> bool:
        return self._kill_at_ms is not None and proc.monotonic_ms() >= self._kill_at_ms

    def _idle_ms(self) -> int | None:
        """Return the time until the next deadline; None if there is none."""
        if self._killing() or (self._family.agent_dead and not proc.LINUX):
            return _SWEEP_MS
        waits_ms: list[int] = []
        if self._kill_at_ms is not None:
            waits_ms.append(self._kill_at_ms - proc.monotonic_ms())
        elif self._timeout_at_ms is not None:
            waits_ms.append(self._timeout_at_ms - proc.monotonic_ms())
        if self._kill_at_ms is None and self._lease_until_boot_ms is not None:
            waits_ms.append(min(self._lease_until_boot_ms - proc.boot_ms(), _CLOCK_CHECK_MS))
        if self._fence.is_ahead and self._fence.until_boot_ms is not None:
            waits_ms.append(min(self._fence.until_boot_ms - proc.boot_ms(), _CLOCK_CHECK_MS))
        return max(0, min(waits_ms)) if waits_ms else None

    def _look_at_clocks(self) -> None:
        if self._fence.passes(now_boot_ms := proc.boot_ms()):
            # Another host may have the session soon: this deadline also cuts a grace short that has begun.
            self._end("lease-expired", self._fence.grace_left_ms(now_boot_ms))
        if self._killing():
            self._family.kill_rest()
        elif self._timeout_at_ms is not None and proc.monotonic_ms() >= self._timeout_at_ms:
            self._end("timeout", self._spec.grace_ms)
        elif self._lease_until_boot_ms is not None and proc.boot_ms() >= self._lease_until_boot_ms:
            self._end("lease-expired", self._spec.grace_ms)

    def _end(self, outcome: str, grace_ms: int) -> None:
        """Begin to end the session for a reason; later reasons can only shorten the grace."""
        self._family.look()
        if not self._family.agent_dead:
            self._outcome = self._outcome or outcome
        self._timeout_at_ms = self._lease_until_boot_ms = None
        self._request_end(grace_ms)

    def _request_end(self, grace_ms: int) -> None:
        kill_at_ms = proc.monotonic_ms() + max(grace_ms, 0)
        if self._kill_at_ms is None:
            self._kill_at_ms = kill_at_ms
            self._family.signal(signal.SIGTERM)
            self._family.signal(signal.SIGCONT)  # a stopped process handles no signal but SIGKILL
        self._kill_at_ms = min(self._kill_at_ms, kill_at_ms)

    def _interrupt(self, request: str, order: "dict[str, durable.Json]") -> None:
        """Signal only the agent, once per request: a restarted runner may repeat a request.

        The request can come late. A session that has shown a sign since the silence may wait for an operator by now.
        """
        self._family.look()
        if self._family.agent_dead or self._kill_at_ms is not None or request in self._interrupted:
            return
        self._interrupted.add(request)
        since_ms, heartbeat = order.get("silent_since_ms"), order.get("heartbeat")
        if type(since_ms) is int and isinstance(heartbeat, str) and self._output.last_sign_ms(heartbeat) > since_ms:
            return
        self._family.interrupt()

    def _hold(self, *, held: bool) -> None:
        """Let the time limit stand still, or go on with what was left of it; a repeated order changes nothing."""
        if held and self._timeout_at_ms is not None:
            self._held_ms, self._timeout_at_ms = self._timeout_at_ms - proc.monotonic_ms(), None
        elif not held and self._held_ms is not None and self._kill_at_ms is None:
            self._timeout_at_ms, self._held_ms = proc.monotonic_ms() + self._held_ms, None

    def _kill(self) -> None:
        self._family.look()
        if not self._family.agent_dead and self._outcome in ("", "ended"):
            self._outcome = "killed"
        self._timeout_at_ms = self._lease_until_boot_ms = None
        self._kill_at_ms = proc.monotonic_ms()

    def _read_output(self) -> None:
        data = self._read(self._agent.output_fd)
        if data == b"":
            self._poll.unregister(self._agent.output_fd)  # all writers closed it, but may still live
        elif data is not None:
            self._output.write(data)

    def _drain(self) -> None:
        """Read the rest of the pipe, without waiting until it is closed, and up to a limit if it never runs empty."""
        left_bytes = _DRAIN_LIMIT_BYTES
        while left_bytes > 0 and (data := self._read(self._agent.output_fd)):
            self._output.write(data)
            left_bytes -= len(data)

    def _read_orders(self) -> None:
        *lines, self._partial = (self._partial + (self._read(self._control_fd) or b"")).split(b"\n")
        if len(self._partial) > _MESSAGE_LIMIT_BYTES:
            self._partial = b""
        for line in lines:
            try:
                self._obey(durable.decode(line.decode("utf-8")))
            except ValueError:
                continue  # an invalid order must not stop the shim

    def _obey(self, order: "durable.Json") -> None:
        if not isinstance(order, dict):
            return
        grace_ms, until_boot_ms = order.get("end"), order.get("lease_until_boot_ms")
        fence_ms, fence_grace_ms = order.get("fence_until_boot_ms"), order.get("fence_grace_ms")
        if order.get("kill") is True:
            self._kill()
        elif type(grace_ms) is int:
            self._end("ended", grace_ms)
        elif isinstance(request := order.get("interrupt"), str):
            self._interrupt(request, order)
        elif isinstance(held := order.get("hold"), bool):
            self._hold(held=held)
        elif type(until_boot_ms) is int and self._kill_at_ms is None:
            self._lease_until_boot_ms = max(self._lease_until_boot_ms or 0, until_boot_ms)
        elif type(fence_ms) is int and type(fence_grace_ms) is int:
            self._fence.move(fence_ms, fence_grace_ms)

    def _read_signals(self) -> None:
        """React to SIGTERM. SIGCHLD has woken the loop, and needs no more."""
        if signal.SIGTERM in (self._read(self._wakeup_fd) or b""):
            self._end("ended", self._spec.grace_ms)

    @staticmethod
    def _read(fd: int) -> bytes | None:
        """Read the available bytes; None if there are none now, empty at the end of the stream."""
        try:
            return os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return None

    def abandon(self) -> None:
        """Kill all processes within reach: the last action of a failing shim."""
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
        """Return the explanation of the end; empty for an agent that exited with 0."""
        reasons = {
            "timeout": f"it was still running after {self._spec.timeout_ms} ms",
            "lease-expired": "the runner had ended or was away, so that no runner renewed the lease of the session",
            "ended": "it was asked to end",
            "killed": "it was killed at once, as ordered",
        }
        reason = reasons.get(self._outcome, "")
        if code == -signal.SIGKILL and self._outcome in ("timeout", "lease-expired", "ended") and self._killing():
            return f"{reason}; it did not end on TERM; killed"
        how = f"exit status {code}" if code >= 0 else f"{signal.strsignal(-code)} (signal {-code})"
        return "; ".join(part for part in (reason, how if reason or code != 0 else "") if part)
