"""What a check has proven of each machine and system: the figures of its certificate, and whether it is of this code.

The figures are a file of this package, which ``make certificates`` and ``make pages`` write from the certificates.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from lifefold.core.kernel import Machine, Property, System
from lifefold.interpreters.certificates.covering import Scope
from lifefold.interpreters.rules.syntax import digest_of

FILE: Final = "proofs.json"
"""The file with all proofs, by the names of their targets."""


class Crashed(msgspec.Struct, frozen=True):
    """The crash search of a proof: the most inputs and crashes of a run, and its size."""

    inputs: int
    crashes: int
    states: int
    steps: int


class Proof(msgspec.Struct, frozen=True):
    """A proof: how many properties hold, within which bounds, and how much was searched.

    ``target`` is a machine or a system ``of`` that name, with its opening or its first record. ``open`` has the
    properties that are not known to hold, and ``lacking`` says why it is no whole proof: both are usually empty.

    A limit that is null is no limit. ``coverage`` counts the used ones of all states, rows and rules.
    """

    target: str
    of: str
    held: int
    open: tuple[str, ...]
    lacking: str
    states: int
    steps: int
    depth: int
    limits: Mapping[str, int | bool | None]
    coverage: Mapping[str, tuple[int, int]]
    crashes: Crashed | None
    code: str
    versions: Mapping[str, str]
    scope: Scope | None = None
    """What the certificate is of, for logs of its rules."""


class Proofs(msgspec.Struct, frozen=True):
    """All proofs. ``modules`` has each module with its digest once; ``made_of`` has the places of each target's."""

    modules: tuple[tuple[str, str], ...]
    made_of: Mapping[str, tuple[int, ...]]
    proofs: tuple[Proof, ...]


@lru_cache(maxsize=1)
def all_proofs() -> Proofs:
    """Return the proofs that come with this package."""
    text = (resources.files("lifefold.interpreters.web") / FILE).read_bytes()
    return msgspec.json.decode(text, type=Proofs)


def proofs_of(name: str) -> tuple[Proof, ...]:
    """Return the proofs of a machine or a system; a system has one for each of its openings."""
    return tuple(each for each in all_proofs().proofs if each.of == name)


def is_of_this_code(of: Proof, among: Proofs | None = None) -> bool:
    """Tell whether all modules of a proof are as they were. The first call for a module reads it.

    ``among`` has the modules of the proof; without it, those of this package do.
    """
    every = among or all_proofs()
    return all(
        _digest_of(name) == digest for name, digest in (every.modules[each] for each in every.made_of[of.target])
    )


@lru_cache(maxsize=1_024)
def _digest_of(module: str) -> str:
    """Return the digest of a module as it is here; empty for one that is not there."""
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None or found.origin is None:
        return ""
    return digest_of(Path(found.origin).read_text(encoding="utf-8"))


def declared(subject: Machine[Any] | System) -> Iterator[Property[Any]]:
    """Yield the properties that a machine declares; of a system, its own and those of its types of aggregates."""
    yield from subject.properties
    if isinstance(subject, System):
        for each in subject.aggregates.values():
            yield from each.properties
