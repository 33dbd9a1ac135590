"""Forks: a recorded run that goes on otherwise from one of its entries.

``repeated`` gives the later inputs of the log again, decided by the present rules, with or without the crashes of its
runners. An input that is no longer possible is noted and left out. ``written`` makes a log of its own out of the first
entries. A search from an entry is one of ``check`` with the world there.
"""

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio

from lifefold.core.kernel import Cause, Entity, System, SystemStep, World
from lifefold.interpreters.recorder.recording import Recorded
from lifefold.interpreters.replay import Replay
from lifefold.interpreters.store import Batch, create_log, peek_log

KEPT: Final = ("meaning", "plan", "before", "source")
"""The metadata that a fork has of its original; what leads to a repository is left out."""


class LeftOut(NamedTuple):
    """A recorded input that was not repeated: its position in the log, its aggregate, and why."""

    seq: int
    aggregate: str
    why: str


class Otherwise(NamedTuple):
    """An entity that ends in another state than in the log; empty for an entity that is not there."""

    aggregate: str
    entity: str
    recorded: str
    forked: str


class Repeated(NamedTuple):
    """The repetition of the entries after a fork: its steps, and what was left out.

    ``recoveries`` counts the inputs by which runners came back, which are left out on request.
    """

    run: Replay
    left_out: tuple[LeftOut, ...]
    recoveries: int
    otherwise: tuple[Otherwise, ...]

    @property
    def steps(self) -> Sequence[SystemStep]:
        """The steps that were repeated."""
        return self.run.taken


def repeated(system: System, begin: World, later: Sequence[Recorded], *, without_crash: bool) -> Repeated:
    """Give the inputs of later entries again from a world, ``without_crash`` those alone that are no recovery."""
    run, left_out, recoveries = Replay(system, begin=begin), list[LeftOut](), 0
    for each in later:
        if without_crash and each.step.cause is Cause.RECOVERY:
            recoveries += 1
        elif each.is_of_system and (why := run.repeat(each.step.given)):
            left_out.append(LeftOut(each.seq, each.entry.stream, why))
    recorded = later[-1].world if later else begin
    return Repeated(run, tuple(left_out), recoveries, tuple(_otherwise(recorded, run.world)))


def _otherwise(recorded: World, forked: World) -> list[Otherwise]:
    """Return the entities whose states differ."""
    states = [
        {(name, ref): _state(entity) for name, of in world.aggregates.items() for ref, entity in of.entities.items()}
        for world in (recorded, forked)
    ]
    ours, theirs = states
    every = dict.fromkeys((*ours, *theirs))
    return [
        Otherwise(*key, ours.get(key, ""), theirs.get(key, "")) for key in every if ours.get(key) != theirs.get(key)
    ]


def _state(entity: Entity[Any]) -> str:
    return str(entity.state)


def written(log: Path, seq: int, name: str, path: Path | None = None) -> Path:
    """Write the entries of a log until a position as a log of its own, and return its path.

    Without a path it is in a new folder. Its fleet has another name, so ``lifefold run`` refuses to go on with it. The
    worktrees and processes belong to the original, which can go on. Rules decide operator commands in it as in any
    other log. Raises ``FileExistsError``.
    """
    if path is None:
        path = Path(tempfile.mkdtemp(prefix="lifefold-fork-")) / f"{log.stem}-at-{seq}.db"
    with peek_log(log) as store:
        entries = anyio.run(store.between, 0, seq)
        kept = {each: value for each in KEPT if (value := store.meta(each)) is not None}
    with create_log(path, {**kept, "fleet": f"{name} forked at {seq}"}) as fork:
        anyio.run(partial(fork.append, Batch(entries)))
    return path
