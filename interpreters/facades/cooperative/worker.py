"""The process of an agent of kind ``python``: one task of an ``Agent`` subclass, from start to end.

``python -m lifefold.interpreters.facades.cooperative.worker FOLDER MODULE:CLASS`` makes ``CLASS(name)``, starts it,
schedules the task, runs it, and calls its ``process_work()``. The task is over when that method returns. An agent that
is still RUNNING then is completed. The exit status is 0 for COMPLETED, ``SUSPENDED_STATUS`` for SUSPENDED, and 1
otherwise, with the reason on stderr.

*An agent that shuts down may complete as well* (A4): its default machine is the profile ``graceful``.

*Preemption is cooperative.* TERM and INT become a request; the agent yields at its next safe point with ``suspend()``.
Its machine's record is kept in ``LIFEFOLD_STATE_FILE``. The process of the next session with this task continues from
it, also with another agent of the same class. It resumes the agent, whose ``on_resume`` loads the data that
``on_suspend`` saved, and runs it. If that fails, a new agent begins the task from the start. An agent that does not
yield fails when its machine's deadline has passed. The process then exits, without waiting for its threads.

The runner ends the process group after its own grace, ``LIFEFOLD_GRACE_MS``; the machine's deadlines are shorter.
"""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, NoReturn, Protocol, cast

import msgspec

from lifefold.core.kernel import replace
from lifefold.core.lifecycles.runtime import Runtime, State
from lifefold.core.lifecycles.runtime_profiles import graceful
from lifefold.core.policy.reasons import SUSPENDED_STATUS
from lifefold.interpreters.facades.cooperative.agent import Agent, default_machine, record_of, session_grace_ms

_PACKAGE: Final = "lifefold.interpreters.facades.cooperative"

TICK_S: Final = 0.2
"""The pause between two checks of timeouts and deadlines."""


class Worker(Protocol):
    """The method that a target must have beside those of ``Agent``."""

    def process_work(self) -> object:
        """Do the task, and call ``safe_point()`` regularly."""
        ...


class Kept(msgspec.Struct, frozen=True):
    """The contents of a state file: the suspended agent's class, as the fleet file names it, and its record."""

    target: str
    record: Runtime


class TargetError(Exception):
    """The target cannot be loaded, or is no agent; the message says what is missing."""


def main(arguments: list[str], env: Mapping[str, str]) -> int:
    """Run the agent's task; return the exit status of the process."""
    folder, target = arguments
    sys.path.insert(0, folder)
    default_machine.set(graceful)
    if "LIFEFOLD_GRACE_MS" in env:
        session_grace_ms.set(int(env["LIFEFOLD_GRACE_MS"]))
    try:
        agent = agent_of(target, env["LIFEFOLD_AGENT"])
    except TargetError as error:
        return unsuccessful(str(error))
    requests: SimpleQueue[str] = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: requests.put(signal.Signals(number).name))
    state_file = Path(env["LIFEFOLD_STATE_FILE"])
    try:
        if not resumed(agent, target, state_file):
            agent = agent_of(target, agent.agent_id)
            begin(agent, env["LIFEFOLD_TASK"])
        Thread(target=supervise, args=(agent, requests), daemon=True).start()  # it also passes on earlier requests
        work(agent)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an error of the agent's code ends the task
        fail(agent, error)
    return finish(agent, target, state_file)


def agent_of(target: str, name: str) -> Agent:
    """Make the agent that ``MODULE:CLASS`` names. Raises ``TargetError``."""
    kind = class_of(target)
    try:
        made = kind(name)
        made.tick()
    except (Exception, SystemExit) as error:
        message = f"{target}: {type(error).__name__}: {error} (it is made with a name only, as super().__init__(name))"
        raise TargetError(message) from error
    return made


def class_of(target: str) -> Callable[[str], Agent]:
    """Return the class that ``MODULE:CLASS`` names. Raises ``TargetError``."""
    module, _, path = target.partition(":")
    try:
        found: object = attrgetter(path)(importlib.import_module(module))
    except (Exception, SystemExit) as error:
        message = f"{target}: {type(error).__name__}: {error}{_raised_at(error)}"
        raise TargetError(message) from error
    if not (isinstance(found, type) and issubclass(found, Agent) and callable(getattr(found, "process_work", None))):
        message = f"{target}: it must be a subclass of {_PACKAGE}.Agent with a method process_work()"
        raise TargetError(message)
    return found


def _raised_at(error: BaseException) -> str:
    """Return the line of the user's modules that raised an error; empty if none of them did."""
    ours = (__file__, importlib.__file__)
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename not in ours]
    theirs = [each for each in frames if not each.filename.startswith("<frozen ")]
    return f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""


def resumed(agent: Agent, target: str, state_file: Path) -> bool:
    """Resume the suspended agent of the state file; tell whether it runs. If not, the agent must be discarded.

    A file of another class, a file of another format, or an error of ``on_resume`` is no failure of the task. The task
    then begins from the start.
    """
    if not state_file.exists():
        return False
    try:
        kept = msgspec.json.decode(state_file.read_bytes(), type=Kept)
        if kept.target != target:
            return False
        agent.restore(replace(kept.record, agent_id=agent.agent_id))
        agent.resume()
        run(agent)
    except Exception:
        agent.logger.exception("cannot resume, begins from the start")
        return False
    return True


def begin(agent: Agent, task: str) -> None:
    """Bring the agent from the start to RUNNING. Raises errors of hooks: an agent must be prepared before it works."""
    agent.start()
    agent.schedule(task)
    run(agent)


def run(agent: Agent) -> None:
    """Move the agent to RUNNING, unless it is RUNNING already. Raises the first error of a hook."""
    if record_of(agent).state is not State.RUNNING:
        agent.run()
    for failure in agent.failures:
        raise failure


def work(agent: Agent) -> None:
    """Do the task; an agent that is RUNNING afterwards is completed."""
    came = cast("Worker", agent).process_work()
    if isinstance(came, Coroutine | Generator | AsyncGenerator):
        raise TypeError("process_work() must do the task when it is called: no 'async def', and no 'yield' in it")
    if record_of(agent).state is State.RUNNING:
        agent.complete()


def fail(agent: Agent, error: BaseException) -> None:
    """Fail the agent, if its state permits it, with the error and its cause as the reason."""
    traceback.print_exception(error)
    causes = [] if error.__cause__ is None else traceback.format_exception_only(error.__cause__)
    with suppress(Exception):
        agent.fail("; ".join(line.strip() for line in (*traceback.format_exception_only(error), *causes)))


def finish(agent: Agent, target: str, state_file: Path) -> int:
    """Save the record of a suspended agent, and return the exit status of the process."""
    match record_of(agent).state:
        case State.SUSPENDED:
            keep(state_file, Kept(target, record_of(agent)))
            return SUSPENDED_STATUS
        case State.COMPLETED:
            state_file.unlink(missing_ok=True)
            return 0
        case state:
            state_file.unlink(missing_ok=True)
            return unsuccessful(f"ended in {state}: {agent.failure_reason or 'process_work() returned'}")


def unsuccessful(why: str) -> int:
    """Write the reason to stderr, and return the exit status of a failure."""
    sys.stderr.write(f"{why}\n")
    sys.stderr.flush()
    return 1


def keep(file: Path, kept: Kept) -> None:
    """Write a state file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.new")
    draft.write_bytes(msgspec.json.encode(kept))
    draft.replace(file)


def supervise(agent: Agent, requests: "SimpleQueue[str]", leave: Callable[[int], NoReturn] = os._exit) -> None:
    """Pass requests on, and fire timers, until the agent fails by forced preemption; then exit."""
    while record_of(agent).error_code != "forced_preemption":
        with suppress(Empty):
            agent.request_preemption(f"asked by {requests.get(timeout=TICK_S)}")
        agent.tick()
    leave(unsuccessful(f"ended in {State.FAILED}: {agent.failure_reason}"))


if __name__ == "__main__":
    status = main(sys.argv[1:], os.environ)
    sys.stdout.flush()
    os._exit(status)  # the task is over, even if threads of the agent still run
