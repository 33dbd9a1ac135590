"""Preemption: that somebody wants an agent to yield, and why it does not have to just now.

A *request* and the *sections* that may not be interrupted are two things (A15). A request that comes while a section is
being executed stands, and is answered at the first safe point after it. A section may declare how long it takes at
most; of several, the earliest limit counts (A18).

From a request to a failure there are two deadlines (A17). When the agent has not yielded in time, it is *signalled*;
when a grace period later it has still not, it is failed. The first deadline is a timeout that counts from when the
agent could first have answered: from the end of the sections in which the request came, and in those it is the end of
what they declare. A section defers a deadline that was still to come when it was entered: the signal to the end of what
it declares, and if it declares no limit for as long as it lasts; the failure only to the end of what it declares.

So nobody evades preemption by keeping busy. Leaving one section and entering the next does not start the timeout again,
nor does waiting; who comes back from a wait is signalled anew, but once; and a section that is entered after the signal
defers nothing.
"""

import msgspec

from lifefold.core.kernel import replace


class Section(msgspec.Struct, frozen=True):
    """A stretch of work that is not to be interrupted, by its owner's ``key``; ``until_ms`` if it declared a limit."""

    key: int
    until_ms: int | None = None
    entered_ms: int = 0


class Preemption(msgspec.Struct, frozen=True):
    """What stands beside an agent's state. Times are Unix milliseconds.

    ``asked_ms`` is when the request came, ``since_ms`` since when it could have been answered, ``signalled_ms`` when
    the agent was told that it is overdue, and ``spared_ms`` when that was taken back for a wait, as it is once.
    """

    requested: bool = False
    reason: str = ""
    asked_ms: int | None = None
    since_ms: int | None = None
    signalled_ms: int | None = None
    spared_ms: int | None = None
    sections: tuple[Section, ...] = ()

    @property
    def is_wanted(self) -> bool:
        """Whether the agent should yield now: this is what a safe point asks."""
        return self.requested and not self.sections

    def has(self, key: int) -> bool:
        """Tell whether the section of this key is being executed."""
        return any(section.key == key for section in self.sections)

    def request(self, reason: str, at_ms: int) -> "Preemption":
        """Return it with a request; a repeated one gives a new reason and no new time."""
        return replace(self, requested=True, reason=reason, asked_ms=at_ms if self.asked_ms is None else self.asked_ms)

    def answerable(self, at_ms: int) -> "Preemption":
        """Return it with the timeout running, unless nobody asks, a section lasts in which he did, or it runs."""
        if self.asked_ms is None or self.since_ms is not None or self.entered_by(self.asked_ms):
            return self
        return replace(self, since_ms=at_ms)

    def signal(self, at_ms: int) -> "Preemption":
        """Return it with the grace period running."""
        return replace(self, signalled_ms=at_ms)

    def spare(self, at_ms: int) -> "Preemption":
        """Return it without the signal if there is one, once: the agent is given the grace period once more."""
        first = self.signalled_ms is not None and self.spared_ms is None
        return replace(self, signalled_ms=None, spared_ms=at_ms) if first else self

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
        if self.signalled_ms is not None:
            over_ms, deferring = self.signalled_ms + grace_ms, self.entered_by(self.signalled_ms)
            return max(over_ms, _declared_ms(deferring) or over_ms)
        if self.spared_ms is not None:
            return self.spared_ms
        if self.since_ms is None:
            return _declared_ms(self.sections) if self.requested else None
        over_ms = self.since_ms + timeout_ms
        deferring = self.entered_by(over_ms)
        if not deferring:
            return over_ms
        declared_ms = _declared_ms(deferring)
        return None if declared_ms is None else max(over_ms, declared_ms)

    def without_deadlines(self, at_ms: int) -> "Preemption":
        """Return it with what is asked for and what is being executed, as if all of that began at ``at_ms``."""
        sections = tuple(Section(section.key, None, at_ms) for section in self.sections)
        return Preemption(requested=self.requested, reason=self.reason, sections=sections)

    def normal_form(self, at_ms: int, timeout_ms: int, grace_ms: int) -> "Preemption":
        """Return the simplest one that means the same from ``at_ms`` on.

        Of its times only the last one that a deadline counts from matters: the signal, or that it was taken back, or
        since when the request could have been answered, or the request. It matters whether a section was entered by
        then, and nothing matters any longer than until the deadline has passed.
        """
        if self.signalled_ms is not None:
            from_ms = max(self.signalled_ms, at_ms - grace_ms - 1)
            spared_ms = None if self.spared_ms is None else at_ms
            same = replace(self, asked_ms=at_ms, since_ms=at_ms, signalled_ms=from_ms, spared_ms=spared_ms)
            return same.with_sections(self.entered_by(self.signalled_ms), from_ms, at_ms)
        if self.spared_ms is not None:
            same = replace(self, asked_ms=at_ms, since_ms=at_ms, spared_ms=at_ms)
            return same.with_sections(self.sections, at_ms, at_ms)
        if self.since_ms is not None:
            from_ms = max(self.since_ms, at_ms - timeout_ms - 1)
            same = replace(self, asked_ms=from_ms, since_ms=from_ms)
            return same.with_sections(self.entered_by(self.since_ms + timeout_ms), from_ms + timeout_ms, at_ms)
        if self.asked_ms is not None:
            from_ms = max(self.asked_ms, at_ms - 1)
            return replace(self, asked_ms=from_ms).with_sections(self.entered_by(self.asked_ms), from_ms, at_ms)
        return self.with_sections(self.sections, at_ms, at_ms)

    def with_sections(self, before: tuple[Section, ...], from_ms: int, at_ms: int) -> "Preemption":
        """Return it with these sections entered by ``from_ms``, the others now, and no limit that is long reached."""
        sections = tuple(
            Section(
                section.key,
                None if section.until_ms is None else max(section.until_ms, at_ms),
                min(from_ms, at_ms) if section in before else at_ms,
            )
            for section in self.sections
        )
        return replace(self, sections=sections)

    def entered_by(self, at_ms: int) -> tuple[Section, ...]:
        """Return the sections that were entered by this time."""
        return tuple(section for section in self.sections if section.entered_ms <= at_ms)


def _declared_ms(sections: tuple[Section, ...]) -> int | None:
    """Return until when sections defer preemption: the earliest of their limits, None if none has one (A18)."""
    return min((section.until_ms for section in sections if section.until_ms is not None), default=None)
