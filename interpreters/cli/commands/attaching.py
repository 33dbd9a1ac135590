"""The command ``attach``: an operator continues the conversation of an agent by hand.

The agent is paused through the log, and its session ends. The program, its folder and its adapter are those of the last
session. They come from its order on disk, since the fleet file may have changed.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import sleep
from types import FrameType
from typing import Final

import msgspec

from lifefold.core.fleet import service, system
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import conversations, desired_state, shutdown
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.adapters import Conversation
from lifefold.interpreters.adapters.adapter import resume_argv
from lifefold.interpreters.cli import inside, logs, operator_commands
from lifefold.interpreters.cli.addressees import addressee, owner_of
from lifefold.interpreters.cli.answers import DELIVERY, answer
from lifefold.interpreters.cli.commands.telling import obstacle_to_pause
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import LOG
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.engine import ACCEPTED, Ledger
from lifefold.interpreters.explain import status
from lifefold.interpreters.fleet_file import Agent, FleetFileError, load
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.process_evidence import look
from lifefold.interpreters.fleet_runner.session_facts import adapter_of_start
from lifefold.interpreters.fleet_runner.variables import login_secrets, of_program
from lifefold.interpreters.processes import read_order
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import LogStore

REASON: Final = "attached"
"""The reason of the pause."""

_ACCEPTED: Final = "accepted: an agent program whose session at a task has begun its conversation, or the task of one"


class Attached(msgspec.Struct, frozen=True):
    """The command that resumes a conversation by hand, in its folder, with further variables.

    ``secrets`` are variables that are given to the program, and not printed.
    """

    argv: tuple[str, ...]
    folder: str
    variables: dict[str, str]
    secrets: dict[str, str]

    @property
    def typed(self) -> str:
        """The command as it is typed in a shell."""
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in self.variables.items())
        return f"cd {shlex.quote(self.folder)} && {variables}{shlex.join(self.argv)}"


def attach(arguments: Namespace) -> int:
    """Pause an agent, and print the command that resumes its conversation by hand; with ``--exec`` run it.

    With ``--json`` the first answer is that of the pause, and the last one has the command as its reason.
    """
    inside.must_be_outside("attach")
    if arguments.exec and arguments.json:
        raise BadInput("--exec and --json: accepted: one of them, because the agent program needs the terminal")
    name = _pause(arguments.db, arguments.name)
    with logs.peek(arguments.db) as store:
        attached = _still_attached(store, _when_quiet(store, name))
        back = logs.typed(f"lifefold resume {shlex.quote(name)}{LOG}", store)
    code = 0
    if arguments.exec:
        code = _run(attached, back)
    elif arguments.json:
        DELIVERY.get().tell(answer(name, ACCEPTED, attached.typed))
    else:
        print(plain(attached.typed.encode("utf-8", "surrogateescape")))
    DELIVERY.get().note(f"{back} gives it back: the next session resumes the conversation")
    return 1 if code else 0


def _pause(db: str | None, typed: str) -> str:
    """Pause the agent that is meant, unless it is paused already; return its name. Raises ``BadInput``."""
    with logs.peek(db) as store:
        there = logs.fold(store).aggregates
        name = _agent(there, typed)
        of = there[f"{worker.KIND}/{name}"]
        _attached(store, of)
        wanted = of.record("desired_state").state
    if wanted is desired_state.State.PAUSE:
        DELIVERY.get().note(f"{name}: is paused already")
        return name

    def judge(there: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of = there[f"{worker.KIND}/{name}"]
        must_have_conversation(of)
        why = obstacle_to_pause(of, name)
        done = f"paused, until lifefold resume {shlex.quote(name)}{LOG}"
        event = desired_state.PauseWanted(REASON)
        yield Refused(name, why) if why else Said(name, of.name, "desired_state", event, done)

    operator_commands.say(db, judge, "status")
    sys.stdout.flush()
    return name


def _agent(there: Mapping[str, Aggregate], typed: str) -> str:
    """Return the agent that is meant: by its name, or by that of its task. Raises ``BadInput``."""
    found = addressee(there, typed)
    if not found.is_task:
        if f"{service.KIND}/{found.name}" in there:
            raise BadInput(f"{found.name} is a service, and has no conversation; {_ACCEPTED}")
        return found.name
    owner = owner_of(there, found.name)
    if not owner:
        raise BadInput(f"no agent has the task {found.name} now; lifefold why {found.name} explains it; {_ACCEPTED}")
    return owner


def must_have_conversation(of: Aggregate) -> Conversation:
    """Return the conversation of an agent at its task. Raises ``BadInput`` if it has none, or has not begun it."""
    found, work = conversations.of(of), of.record("assignment")
    if found is None:
        raise BadInput(f"{of.key} is no agent program with conversations; {_ACCEPTED}")
    task = status.assigned_task(work)
    if not task:
        raise BadInput(f"{of.key} has no task now, and no conversation about one; {_ACCEPTED}")
    if not found.is_begun or not work.sessions:
        raise BadInput(f"{of.key} has not begun its conversation about {task} yet; try again later; {_ACCEPTED}")
    return Conversation(found.named, begun=True)


def _when_quiet(store: LogStore, name: str) -> Aggregate:
    """Return the worker of a paused agent when its session is over. Raises ``BadInput`` if it cannot be waited for."""
    ledger, folder = Ledger(system), FleetFolder(store.path)
    was_paused = False
    while True:
        for _ in logs.decisions(store, ledger):
            pass
        of = ledger.aggregates[f"{worker.KIND}/{name}"]
        is_paused = of.record("desired_state").state is desired_state.State.PAUSE
        if was_paused and not is_paused:
            raise BadInput(f"{name}: the pause was ended by another command; give lifefold attach again")
        was_paused = was_paused or is_paused
        if is_paused and shutdown.quiet(of):
            return of
        if not store.is_written():
            found = look(folder, status.agent_status(of))
            if found is None or not found.alive:
                return of
            begin = logs.typed(f"lifefold run {logs.FLEET_FILE}", store)
            raise BadInput(f"{name}: the session still runs as process {found.pid}, without a runner; {begin} ends it")
        sleep(logs.LOOK_S)


def _still_attached(store: LogStore, of: Aggregate) -> Attached:
    """Return the command for a paused worker. Raises ``BadInput`` if its work was over before the pause."""
    try:
        return _attached(store, of)
    except BadInput as gone:
        back = logs.typed(f"lifefold resume {shlex.quote(of.key)}{LOG}", store)
        raise BadInput(f"the session has ended meanwhile: {gone}; {back} lets the agent go on") from None


def _attached(store: LogStore, of: Aggregate) -> Attached:
    """Return the command for the conversation of a worker. Raises ``BadInput`` if there is none."""
    conversation = must_have_conversation(of)
    directory = FleetFolder(store.path).last_start(of.key, status.agent_status(of).sessions)
    order, adapter = read_order(directory), adapter_of_start(directory)
    if order is None:
        raise BadInput(f"{of.key}: the program of its last session is unknown: {directory} has no readable order")
    words = resume_argv(adapter, conversation)
    if not words:
        raise BadInput(
            f"{of.key}: the adapter {adapter.name} has no command that resumes a conversation by hand;"
            f" its folder is {order.cwd}"
        )
    agent = _agent_in_file(store, of.key)
    argv = (_program(order.argv[0], agent), *words[1:])
    if agent is None:
        return Attached(argv, order.cwd, {}, {})
    return Attached(argv, order.cwd, of_program(agent), login_secrets(agent))


def _agent_in_file(store: LogStore, name: str) -> Agent | None:
    """Return the agent of the fleet file; None if the file cannot be read, or has it no more."""
    try:
        fleet = load(Path(store.meta("source") or ""), watch=True)
    except (FleetFileError, OSError):
        return None
    return next((each for each in fleet.agents if each.name == name), None)


def _program(name: str, agent: Agent | None) -> str:
    """Return the program as a terminal finds it: an agent can have a search path of its own."""
    path = None if agent is None else agent.env.get("PATH")
    return name if path is None else shutil.which(name, path=path) or name


def _run(attached: Attached, back: str) -> int:
    """Run the command in this terminal to its end, and return its exit code. Ctrl-C is for the program alone.

    ``back`` is the command that gives the conversation back. Raises ``BadInput`` if the program does not begin.
    """
    print(plain(attached.typed.encode("utf-8", "surrogateescape")), flush=True)
    before = signal.signal(signal.SIGINT, _leave_to_the_program)
    try:
        env = {**os.environ, **attached.variables, **attached.secrets}
        return subprocess.call(attached.argv, cwd=attached.folder, env=env)  # noqa: S603 - as in every session
    except OSError as error:
        raise BadInput(f"{attached.argv[0]}: {error.strerror}; run it by hand; {back} gives it back") from error
    finally:
        signal.signal(signal.SIGINT, before)


def _leave_to_the_program(_number: int, _frame: FrameType | None) -> None:
    """Do nothing. A handler, unlike an ignored signal, is not inherited by the program."""
