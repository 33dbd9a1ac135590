"""What an engine is at, and what may be asked of it then: an engine used in the wrong order says what is wrong."""

from enum import StrEnum


class EngineMisuseError(RuntimeError):
    """An engine was asked for something that it cannot do at its stage. Nothing was changed."""


class Stage(StrEnum):
    """How far an engine is. The value says it in a sentence about the engine."""

    NEW = "has no log loaded"
    LOADING = "is loading its log"
    LOADED = "has loaded its log"
    RESUMED = "has loaded its log and is to go on with it"
    RUNNING = "is running"
    ENDED = "has ended"

    @classmethod
    def before_the_end(cls) -> tuple["Stage", ...]:
        """Return all stages but the last one."""
        return tuple(each for each in cls if each is not cls.ENDED)


REMEDIES = {
    ("resume", Stage.NEW): "await engine.load() first, or only engine.run(...), which does both",
    ("resume", Stage.LOADING): "wait for engine.load()",
    ("run", Stage.LOADING): "wait for engine.load(); if it has failed, make another Engine",
    ("run", Stage.RUNNING): "one run at a time; offer or send it inputs meanwhile",
}
ANOTHER = "make another Engine on the same log: it goes on where this one has stopped"


def must_be(what: str, stage: Stage, *accepted: Stage) -> None:
    """Raise ``EngineMisuseError`` if an engine that is asked for something is at none of these stages."""
    if stage not in accepted:
        raise EngineMisuseError(f"{what}: the engine {stage}; {REMEDIES.get((what, stage), ANOTHER)}")
