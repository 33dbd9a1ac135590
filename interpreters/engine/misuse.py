"""The stages of an engine, and the error for a call that does not fit the stage."""

from enum import StrEnum


class EngineMisuseError(RuntimeError):
    """The engine's stage does not allow this call. Nothing was changed."""


class Stage(StrEnum):
    """The stage of an engine. The value continues a sentence that begins with "the engine"."""

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
    """Raise ``EngineMisuseError`` unless the engine is at one of the accepted stages; ``what`` names the call."""
    if stage not in accepted:
        raise EngineMisuseError(f"{what}: the engine {stage}; {REMEDIES.get((what, stage), ANOTHER)}")
