"""The answers to operator commands: one for each name, printed as a line, or with ``--json`` as an object a line."""

import sys
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Final

import msgspec

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.wording import as_typed
from lifefold.interpreters.engine import ACCEPTED, REFUSED
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import StoreError

LEFT: Final = "stored in the log; the runner has not answered yet"
"""The answer to a command that no runner has decided on in time."""


class Outcome(StrEnum):
    """Whether a command holds: decided and applied, left in the log for the runner, or refused without an effect."""

    APPLIED = "applied"
    SENT = "sent"
    REFUSED = "refused"


class Answer(msgspec.Struct, frozen=True):
    """The answer to one command for one target: an agent, a task, a question, a budget, the plan.

    ``reason`` is the sentence after the name in a line, and ``key`` is the delivery's. The entry of the log has the key
    ``KEY/NUMBER/TARGET``.
    """

    command: str
    target: str
    outcome: Outcome
    reason: str
    key: str = ""

    @property
    def line(self) -> str:
        """The answer as a line for a terminal."""
        return f"{self.target}: {self.reason}"

    @property
    def is_accepted(self) -> bool:
        """Whether the command is applied, or waits in the log."""
        return self.outcome is not Outcome.REFUSED


class Delivery(msgspec.Struct, frozen=True):
    """How a command is given, and how its operator gets the answer.

    ``key`` makes a repeated command recognisable: the log accepts each key once. ``tell`` gets each answer, and
    ``note`` a sentence beside the answers.
    """

    key: str = ""
    tell: Callable[[Answer], None] = lambda given: print(given.line)
    note: Callable[[str], None] = print
    command: str = ""


DELIVERY: Final[ContextVar[Delivery]] = ContextVar("delivery", default=Delivery())  # noqa: B039 - a frozen struct
"""The delivery of the command that is given now: at a terminal it prints lines, and has no key."""


def answer(target: str, answered: str, words: str) -> Answer:
    """Return the answer of the log about a target; ``words`` is the same for an operator."""
    given = DELIVERY.get()
    accepted = Outcome.APPLIED if answered.startswith(ACCEPTED) else Outcome.REFUSED
    outcome = Outcome.SENT if answered.startswith(LEFT) else accepted
    said = plain(" ".join(words.split()).encode())
    return Answer(given.command, plain(target.encode()), outcome, said, given.key)


@contextmanager
def delivered(command: str, key: str, *, in_json: bool) -> Generator[None]:
    """Deliver the answers of a command in lines, or in JSON.

    In JSON the refusal of the whole command is an answer without a target. A sentence beside the answers goes to the
    standard error.
    """
    told: list[Answer] = []

    def tell(given: Answer) -> None:
        told.append(given)
        given = msgspec.structs.replace(given, reason=given.reason.removeprefix(REFUSED))
        print(msgspec.json.encode(given).decode())

    written = Delivery(key or uuid.uuid4().hex, tell, _beside, command)
    delivery = written if in_json else Delivery(key, command=command)
    before = DELIVERY.set(delivery)
    try:
        yield
    except (BadInput, StoreError) as error:
        if in_json and not told:
            tell(Answer(command, "", Outcome.REFUSED, as_typed(str(error)), delivery.key))
        raise
    finally:
        DELIVERY.reset(before)


def _beside(words: str) -> None:
    print(words, file=sys.stderr)
