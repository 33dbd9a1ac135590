"""Preemption: that somebody wants an agent to yield, and why it does not have to just now.

A *request* and the *sections* that may not be interrupted are two things (A15). A request that comes while a section is
being executed stands, and is answered at the first safe point after it. A section may declare how long it takes at
most; of several, the earliest limit counts (A18).

From a request to a failure there are two deadlines (A17). When the agent has not yielded in time, it is *signalled*;
when a grace period later it has still not, it is failed. The first deadline is the end of what the sections declare,
or, outside of them, a timeout that counts from when the agent could first have answered. A section that declares no
limit defers it for as long as it lasts. The second is never within a section's declared time. Leaving one section and
entering the next does not start the timeout again, nor does waiting: an agent that never asks is signalled in the end.
"""

import msgspec

from lifefold.core.kernel import replace


class Section(msgspec.Struct, frozen=True):
    """A stretch of work that is not to be interrupted, by its owner's ``key``; ``until_ms`` if it declared a limit."""

    key: int
    until_ms: int | None = None


class Preemption(msgspec.Struct, frozen=True):
    """What stands beside an agent's state. Times are Unix milliseconds.

    ``since_ms`` is since when the request could have been answered, ``signalled_ms`` when the agent was told that it is
    overdue.
    """

    requested: bool = False
    reason: str = ""
    since_ms: int | None = None
    signalled_ms: int | None = None
    sections: tuple[Section, ...] = ()

    @property
    def is_wanted(self) -> bool:
        """Whether the agent should yield now: this is what a safe point asks."""
        return self.requested and not self.sections

    @property
    def declared_ms(self) -> int | None:
        """Until when the sections defer preemption: the earliest of their limits, None if none has one (A18)."""
        return min((s.until_ms for s in self.sections if s.until_ms is not None), default=None)

    def has(self, key: int) -> bool:
        """Tell whether the section of this key is being executed."""
        return any(section.key == key for section in self.sections)

    def request(self, reason: str) -> "Preemption":
        """Return it with a request; a repeated one gives a new reason and no new time."""
        return replace(self, requested=True, reason=reason)

    def answerable(self, at_ms: int) -> "Preemption":
        """Return it with the timeout running, if there is a request, no section, and it does not run already."""
        return replace(self, since_ms=at_ms) if self.is_wanted and self.since_ms is None else self

    def signal(self, at_ms: int) -> "Preemption":
        """Return it with the grace period running."""
        return replace(self, signalled_ms=at_ms)

    def spare(self) -> "Preemption":
        """Return it without the signal: the agent is given the time to yield once more."""
        return replace(self, signalled_ms=None)

    def consume(self) -> "Preemption":
        """Return it without the request (A16); sections stay."""
        return Preemption(sections=self.sections)

    def enter(self, section: Section) -> "Preemption":
        """Return it within one more section."""
        return replace(self, sections=(*self.sections, section))

    def leave(self, key: int) -> "Preemption":
        """Return it out of the section of this key."""
        return replace(self, sections=tuple(section for section in self.sections if section.key != key))

    def due_ms(self, timeout_ms: int, grace_ms: int) -> int | None:
        """Return when the next of the two deadlines is; None if there is none."""
        if not self.requested:
            return None
        declared_ms = self.declared_ms
        if self.signalled_ms is not None:
            over_ms = self.signalled_ms + grace_ms
            return over_ms if declared_ms is None else max(over_ms, declared_ms)
        if self.sections:
            return declared_ms
        return None if self.since_ms is None else self.since_ms + timeout_ms
