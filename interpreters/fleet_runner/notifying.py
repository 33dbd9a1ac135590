"""Deliveries: a notification becomes one command, or one request to a web hook. The core decides when and how often.

A try has a time limit; then its command is ended with its process group, and its request is abandoned. At most
``MOST_AT_ONCE`` tries run at a time, in threads of their own, so that a server without an answer delays nothing else.

A runner that dies before it has recorded a delivery delivers again. The identity of a notification is the same then: it
names the log, the notifier and the number. The next runner first ends the command that a killed runner has left.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import anyio
from anyio import to_thread

from lifefold.core.fleet.board import notifier
from lifefold.effects import DeliverNotification, NotificationKind
from lifefold.interpreters.engine import ActivityContext, handles
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.command import filled
from lifefold.interpreters.fleet_file.notify import Notifier
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.fleet_runner.variables import environment
from lifefold.interpreters.processes.command import Limits, Streams, run
from lifefold.interpreters.processes.left_command import CommandRecord

MOST_AT_ONCE: Final = 8
"""The most tries at a time."""

KEEP_BYTES: Final = 4_096
"""The most bytes that are kept of the output of a command, for the reason of a failure."""

REASON_CHARACTERS: Final = 500
"""The most characters of the reason of a failed try."""

WITH_COMMAND: Final = frozenset(
    {
        NotificationKind.APPROVAL,
        NotificationKind.PLAN,
        NotificationKind.BUDGET,
        NotificationKind.PERMISSION,
        NotificationKind.QUESTION,
    }
)
"""The kinds of notifications whose text has a command of an operator, before any words of an agent."""

_COMMAND: Final = re.compile(r"\blifefold (?:approve|answer|budget)(?: [^\s:]+)*")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class UndeliveredError(Exception):
    """A try has failed; the message says why."""


class Notifying:
    """Delivers notifications, each try once."""

    def __init__(self, fleet: Callable[[], Fleet], folder: FleetFolder, secrets: Secrets, run_id: str) -> None:
        """Take the fleet as it is in force, the files of its log, its secrets, and the identity of its log."""
        self._fleet: Final = fleet
        self._folder: Final = folder
        self._secrets: Final = secrets
        self._run_id: Final = run_id
        self._at_once: Final = anyio.CapacityLimiter(MOST_AT_ONCE)
        self._threads: Final = anyio.CapacityLimiter(MOST_AT_ONCE)

    @handles(DeliverNotification)
    async def deliver(self, activity: DeliverNotification, context: ActivityContext) -> None:
        """Try to deliver a notification, and report the delivery or the reason of the failure."""
        record = CommandRecord(self._folder.delivery(activity.notifier))
        if context.resumed or context.cleanup_only:
            await record.end_left_over()
        if context.cleanup_only:
            return
        try:
            async with self._at_once:
                await self._try(activity, record)
        except (UndeliveredError, OSError, HTTPException, ValueError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            await context.report(notifier.DeliveryFailed(self._secrets.hidden(reason)[:REASON_CHARACTERS]))
        else:
            await context.report(notifier.Delivered())

    async def _try(self, activity: DeliverNotification, record: CommandRecord) -> None:
        fleet = self._fleet()
        of = next((each for each in fleet.notify if each.name == activity.notifier), None)
        if of is None:
            raise UndeliveredError(f"the fleet file has no notifier {activity.notifier}")
        facts = self._facts(activity, fleet.name)
        if of.run:
            with record.kept():
                await self._run(of, facts, fleet, record)
        else:
            with anyio.move_on_after(of.timeout_ms / 1_000) as scope:
                await to_thread.run_sync(_post, of, facts, abandon_on_cancel=True, limiter=self._threads)
            if scope.cancelled_caught:
                raise UndeliveredError(f"{_receiver(of.url)}: no answer within {of.timeout_ms / 1_000:g} s")

    def _facts(self, activity: DeliverNotification, fleet: str) -> dict[str, str]:
        """Return the facts of a notification by name, without secrets."""
        notification = activity.notification
        facts = {
            "id": f"{self._run_id}/{activity.notifier}/{activity.number}",
            "kind": str(notification.kind),
            "fleet": fleet,
            "task": notification.task,
            "agent": notification.agent,
            "text": with_log(notification.kind, in_plain_words(notification.text), str(self._folder.log)),
            "log": str(self._folder.log),
        }
        return {name: self._secrets.hidden(value) for name, value in facts.items()}

    async def _run(self, of: Notifier, facts: Mapping[str, str], fleet: Fleet, record: CommandRecord) -> None:
        """Run the command in the folder of the fleet file."""
        own = {f"LIFEFOLD_{name.upper()}": value.replace("\0", "") for name, value in facts.items()}
        limits = Limits(of.timeout_ms, grace_ms=0, keep_bytes=KEEP_BYTES)
        result = await run(
            filled(of.run, facts),
            fleet.source.parent,
            limits,
            env=environment(os.environ, fleet, own),
            streams=Streams(given=json.dumps(facts).encode(), begun=record.write),
        )
        if result.status == 0:
            return
        how = "took too long" if result.status is None else f"ended with status {result.status}"
        said = self._secrets.quotable(result.errors or result.output, KEEP_BYTES).strip()
        raise UndeliveredError(f"{of.run[0]} {how}{f': {said}' if said else ''}")


def with_log(kind: NotificationKind, text: str, log: str) -> str:
    """Return a text whose command names the log: people read it in another folder. The words of agents stay."""
    if kind not in WITH_COMMAND:
        return text
    return _COMMAND.sub(lambda found: f"{found[0]} --db {shlex.quote(log)}", text, count=1)


def _post(of: Notifier, facts: Mapping[str, str]) -> None:
    """Send the facts once. Every answer 2xx is a receipt. Raises an error otherwise."""
    url, headers = _with_variables(of.url), {name: _with_variables(value) for name, value in of.headers.items()}
    own = {"Content-Type": "application/json", "Idempotency-Key": facts["id"]}
    request = Request(url, json.dumps(facts).encode(), {**headers, **own}, method="POST")  # noqa: S310 - checked with the file
    try:
        with build_opener(NoRedirects).open(request, timeout=of.timeout_ms / 1_000):
            pass
    except HTTPError as error:
        error.close()
        raise UndeliveredError(f"{_receiver(of.url)} answers {error.code}") from error


def _with_variables(text: str) -> str:
    """Return a text with the values of its variables. Raises ``UndeliveredError`` for one that is not set."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise UndeliveredError(f"the variable {found[1]} is not set")
        return os.environ[found[1]]

    return _VARIABLE.sub(value, text)


def _receiver(url: str) -> str:
    """Return the scheme and the host of an address: the rest may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class NoRedirects(HTTPRedirectHandler):
    """Treats a redirect as an error: following it would send a GET instead of the notification."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        """Follow no redirect."""
