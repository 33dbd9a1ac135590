"""Preemption: a request that an agent yields, and the sections that defer it.

A *request* and the *sections* that must not be interrupted are two things (A15). A request during a section stands, and
is answered at the first safe point after it. A section may declare its longest duration; of several, the earliest limit
counts (A18).

Two deadlines lie between a request and a failure (A17). An agent that has not yielded in time is *signalled*. If it has
not yielded a grace period later, it is failed. The first deadline is a timeout from the first moment at which the agent
could answer: the end of the sections in which the request came. During these sections it is the end of their declared
limits. A section defers a deadline that lay ahead when the section was entered. It defers the signal to its declared
limit, or without a limit to its end; it defers the failure to its declared limit only.

So no agent evades preemption by keeping busy. Leaving one section and entering the next does not restart the timeout,
nor does waiting. After a wait an agent is signalled again, but only once. A section that is entered after the signal
defers nothing.
"""

import msgspec

from lifefold.core.kernel import replace


class Section(msgspec.Struct, frozen=True):
    """A stretch of work that must not be interrupted, by its owner's ``key``; ``until_ms`` if it declared a limit."""

    key: int
    until_ms: int | None = None
    entered_ms: int = 0


class Preemption(msgspec.Struct, frozen=True):
    """The preemption of an agent, beside its state. Times are Unix milliseconds.

    ``asked_ms`` is the time of the request, ``since_ms`` the first time at which it could be answered, and
    ``signalled_ms`` the time of the signal. ``spared_ms`` is when a signal was withdrawn for a wait, once.
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
        """Whether the agent should yield now: the answer at a safe point."""
        return self.requested and not self.sections

    def has(self, key: int) -> bool:
        """Tell whether the section of this key is running."""
        return any(section.key == key for section in self.sections)

    def request(self, reason: str, at_ms: int) -> "Preemption":
        """Return it with a request; a repeated one gives a new reason and no new time."""
        return replace(self, requested=True, reason=reason, asked_ms=at_ms if self.asked_ms is None else self.asked_ms)

    def answerable(self, at_ms: int) -> "Preemption":
        """Return it with the timeout running, if there is a request, outside of the sections in which it came."""
        if self.asked_ms is None or self.since_ms is not None or self.entered_by(self.asked_ms):
            return self
        return replace(self, since_ms=at_ms)

    def signal(self, at_ms: int) -> "Preemption":
        """Return it with the grace period running."""
        return replace(self, signalled_ms=at_ms)

    def spare(self, at_ms: int) -> "Preemption":
        """Return it without the signal if there is one, once: the agent gets the grace period once more."""
        first = self.signalled_ms is not None and self.spared_ms is None
        return replace(self, signalled_ms=None, spared_ms=at_ms) if first else self

    def consume(self) -> "Preemption":
        """Return it without the request (A16); sections stay."""
        return Preemption(sections=self.sections)

    def enter(self, section: Section) -> "Preemption":
        """Return it within one more section."""
        return replace(self, sections=(*self.sections, section))

    def leave(self, key: int) -> "Preemption":
        """Return it without the section of this key."""
        return replace(self, sections=tuple(section for section in self.sections if section.key != key))

    def due_ms(self, timeout_ms: int, grace_ms: int) -> int | None:
        """Return the time of the next of the two deadlines; None if there is none."""
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
        """Return it with the request and the sections, as if all of them began at ``at_ms``."""
        sections = tuple(Section(section.key, None, at_ms) for section in self.sections)
        return Preemption(requested=self.requested, reason=self.reason, sections=sections)

    def normal_form(self, at_ms: int, timeout_ms: int, grace_ms: int) -> "Preemption":
        """Return the simplest one with the same meaning from ``at_ms`` on.

        Only the last of its times from which a deadline counts matters: the signal, its withdrawal, the first time for
        an answer, or the request. It matters whether a section was entered by then. Nothing matters beyond the
        deadline.
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
    """Return the end of the deferral by sections: the earliest of their limits, None if none has one (A18)."""
    return min((section.until_ms for section in sections if section.until_ms is not None), default=None)
