"""The turn of an agent for operators: its phase, what the session does, and how it ended."""

import msgspec

from lifefold.core.fleet.worker import output, turns
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import turn
from lifefold.interpreters.explain import questions, words
from lifefold.interpreters.explain.plain_reasons import in_plain_words


class TurnStatus(msgspec.Struct, frozen=True):
    """The present or last turn of an agent; ``since_ms`` is Unix time in milliseconds.

    ``doing`` names the works under way. ``wanted`` is the tool that the session waits for leave to use. ``questions``
    names those that wait for an operator, the oldest first: document 004 has no phase for that. ``tools`` and
    ``compactions`` count those of the present session, or of the last one. ``conversation`` is the agent program's own
    identifier. ``reason``, ``transition_reason`` and ``abort_reason`` explain a failed turn and are empty otherwise.
    """

    number: int
    state: str
    since_ms: int
    task: str
    doing: tuple[str, ...] = ()
    wanted: str = ""
    questions: tuple[str, ...] = ()
    tools: int = 0
    compactions: int = 0
    conversation: str = ""
    reason: str = ""
    transition_reason: str = ""
    abort_reason: str = ""

    @property
    def is_over(self) -> bool:
        """Whether there is no turn under way."""
        return self.state in turns.NONE

    def in_words(self) -> str:
        """Return the phase with what the session does: ``using Bash``; empty without a turn under way."""
        if self.is_over:
            return ""
        return words.of_turn(self.state, ", ".join(dict.fromkeys(self.doing)), self._waits())

    def phase(self) -> str:
        """Return the phase in words, also of a turn that is over."""
        return self.in_words() or words.of_turn(self.state)

    def _waits(self) -> str:
        """Return what the session waits for: leave to use a tool, or the answer to its oldest question."""
        asks = f"asks for {self.wanted}" if self.wanted else ""
        return f"{asks or 'asks'}: {self.questions[0]}" if self.questions else asks

    def ended(self) -> str:
        """Return the reasons of a failed turn in the words of document 004; empty without any."""
        return ", ".join(filter(None, (self.transition_reason, self.abort_reason)))


def turn_status(of: Aggregate) -> TurnStatus | None:
    """Return the turn of a worker; None for one without turns, or before its first one."""
    entity = of.entities.get(turns.REF)
    if entity is None or entity.state is turn.State.IDLE:
        return None
    t: turn.Turn = entity.record
    seen: output.Output = of.record(output.REF)
    works = tuple(each.name or each.work.value for each in seen.works)
    asked = tuple(questions.of_agent(of))
    wanted = asked[0].question.tool if asked else seen.wanted
    return TurnStatus(
        t.number,
        t.state,
        entity.entered_ms,
        t.task,
        works,
        wanted,
        tuple(each.name for each in asked),
        seen.tools,
        seen.condensed,
        seen.conversation,
        in_plain_words(t.reason),
        t.transition_reason or "",
        t.abort_reason or "",
    )
