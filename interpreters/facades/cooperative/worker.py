"""The process that an agent of kind ``python`` lives in: one task of an ``Agent`` subclass, from start to end.

``python -m lifefold.interpreters.facades.cooperative.worker FOLDER MODULE:CLASS`` makes ``CLASS(name)``, starts it,
schedules the task, runs it, and calls its ``process_work()``. The task is over when that has returned; an agent that
has not said how it ended, and is RUNNING, is completed. The exit status is 0 for COMPLETED, ``SUSPENDED_STATUS`` for
SUSPENDED, and 1 for everything else, with the reason on stderr.

*An agent that shuts down may complete as well* (A4): unless it is made with another machine, it has the profile
``graceful``.

*Preemption is cooperative.* TERM and INT become a request; the agent yields at its next safe point with ``suspend()``.
What the machine knows of it is kept in ``LIFEFOLD_STATE_FILE``, and the process of the next session with this task goes
on there, be it another agent of the same class: it resumes the agent, whose ``on_resume`` loads what ``on_suspend``
saved, and runs it. An agent that cannot resume is made anew, and begins at the beginning. One that does not yield is
failed when its machine says so, and with it the process ends, whatever its threads are at.

Whoever started the process ends the group after a grace of its own, ``LIFEFOLD_GRACE_MS``; the machine's deadlines are
within it.
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
from lifefold.core.lifecycles.runtime import Runtime, State, graceful
from lifefold.core.policy.reasons import SUSPENDED_STATUS
from lifefold.interpreters.facades.cooperative.agent import Agent, default_machine, record_of, session_grace_ms

_PACKAGE: Final = "lifefold.interpreters.facades.cooperative"

TICK_S: Final = 0.2
"""How often timeouts and deadlines are looked at."""


class Worker(Protocol):
    """What a target must have beside ``Agent``: the work itself."""

    def process_work(self) -> object:
        """Do the task, asking ``safe_point()`` now and then."""
        ...


class Kept(msgspec.Struct, frozen=True):
    """What is in a state file: the class of the suspended agent, as the fleet file names it, and its record."""

    target: str
    record: Runtime


class TargetError(Exception):
    """There is no such agent; the message says what is missing."""


def main(arguments: list[str], env: Mapping[str, str]) -> int:
    """Let the agent do its task; return the exit status of the process."""
    folder, target = arguments
    sys.path.insert(0, folder)
    default_machine.set(graceful)
    if "LIFEFOLD_GRACE_MS" in env:
        session_grace_ms.set(int(env["LIFEFOLD_GRACE_MS"]))
    try:
        agent = agent_of(target, env["LIFEFOLD_AGENT"])
    except TargetError as error:
        return unsuccessful(str(error))
    wishes: SimpleQueue[str] = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: wishes.put(signal.Signals(number).name))
    state_file = Path(env["LIFEFOLD_STATE_FILE"])
    try:
        if not resumed(agent, target, state_file):
            agent = agent_of(target, agent.agent_id)
            begin(agent, env["LIFEFOLD_TASK"])
        Thread(target=supervise, args=(agent, wishes), daemon=True).start()  # what was asked meanwhile is told now
        work(agent)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the agent's own code: this is how the task ended
        fail(agent, error)
    return finish(agent, target, state_file)


def agent_of(target: str, name: str) -> Agent:
    """Make the agent that ``MODULE:CLASS`` names. Raises ``TargetError``."""
    kind = class_of(target)
    try:
        made = kind(name)
        made.tick()
    except (Exception, SystemExit) as error:
        message = f"{target}: {type(error).__name__}: {error} (it is made with a name alone, as super().__init__(name))"
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
    """Say where in the user's modules an error was raised; nothing if it was in none."""
    ours = (__file__, importlib.__file__)
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename not in ours]
    theirs = [each for each in frames if not each.filename.startswith("<frozen ")]
    return f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""


def resumed(agent: Agent, target: str, state_file: Path) -> bool:
    """Let the agent go on where one of its class was suspended; tell whether it runs. If not, it is of no use any more.

    Another class, a file that is none of ours, or data that ``on_resume`` does not find: all of that is no failure,
    for a task that begins in a clean place has to be done from the beginning.
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
        agent.logger.exception("cannot resume, begins anew")
        return False
    return True


def begin(agent: Agent, task: str) -> None:
    """Bring the agent from the start to RUNNING. Raises what a hook has raised: who could not prepare must not work."""
    agent.start()
    agent.schedule(task)
    run(agent)


def run(agent: Agent) -> None:
    """Let the agent run, unless it does already. Raises what a hook on the way has raised."""
    if record_of(agent).state is not State.RUNNING:
        agent.run()
    for failure in agent.failures:
        raise failure


def work(agent: Agent) -> None:
    """Do the task; to return from it while RUNNING is to complete it."""
    came = cast("Worker", agent).process_work()
    if isinstance(came, Coroutine | Generator | AsyncGenerator):
        raise TypeError("process_work() must do the task when it is called: no 'async def', and no 'yield' in it")
    if record_of(agent).state is State.RUNNING:
        agent.complete()


def fail(agent: Agent, error: BaseException) -> None:
    """Fail the agent, if it can fail where it is, and say why: the error, and what has caused it."""
    traceback.print_exception(error)
    causes = [] if error.__cause__ is None else traceback.format_exception_only(error.__cause__)
    with suppress(Exception):
        agent.fail("; ".join(line.strip() for line in (*traceback.format_exception_only(error), *causes)))


def finish(agent: Agent, target: str, state_file: Path) -> int:
    """Keep what a suspended agent needs to go on, and return the exit status that says how it ended."""
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
    """Say why, and return the exit status that goes with it."""
    sys.stderr.write(f"{why}\n")
    sys.stderr.flush()
    return 1


def keep(file: Path, kept: Kept) -> None:
    """Write what is kept, so that the file has all of it or is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.new")
    draft.write_bytes(msgspec.json.encode(kept))
    draft.replace(file)


def supervise(agent: Agent, wishes: "SimpleQueue[str]", leave: Callable[[int], NoReturn] = os._exit) -> None:
    """Pass requests on and let time happen, until the agent is failed by force; then leave."""
    while record_of(agent).error_code != "forced_preemption":
        with suppress(Empty):
            agent.request_preemption(f"asked by {wishes.get(timeout=TICK_S)}")
        agent.tick()
    leave(unsuccessful(f"ended in {State.FAILED}: {agent.failure_reason}"))


if __name__ == "__main__":
    status = main(sys.argv[1:], os.environ)
    sys.stdout.flush()
    os._exit(status)  # the task is over, whatever threads of the agent's are still at
