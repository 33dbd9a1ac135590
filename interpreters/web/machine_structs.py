"""The contents of the pages of machines and systems: one struct a page, and their parts."""

import msgspec

from lifefold.interpreters.web.proofs import Proof
from lifefold.interpreters.web.report_structs import ReportLine


class MachineLine(msgspec.Struct, frozen=True):
    """A machine or a system with a name; ``kind`` is ``machine`` or ``system``."""

    name: str
    kind: str
    about: str


class MachinesPage(msgspec.Struct, frozen=True):
    """All machines and systems with a name."""

    machines: tuple[MachineLine, ...]


class Row(msgspec.Struct, frozen=True):
    """A row of a transition table, as ``lifefold table --format json`` has it."""

    source: str
    event: str
    when: str
    target: str
    effects: tuple[str, ...]


class Declared(msgspec.Struct, frozen=True):
    """A property that a machine or a system declares. ``kind`` is ``always``, ``always step`` and so on."""

    kind: str
    name: str


class Proven(msgspec.Struct, frozen=True):
    """A proof, and whether it is of the code that runs here. ``words`` are its bounds for people."""

    proof: Proof
    is_of_this_code: bool
    words: str


class MachinePage(msgspec.Struct, frozen=True):
    """A machine or a system: its table, its picture (SVG; empty without one), its properties, and their proofs.

    ``reports`` are those on it that this desk was given.
    """

    machine: MachineLine
    rows: tuple[Row, ...]
    picture: str
    properties: tuple[Declared, ...]
    proofs: tuple[Proven, ...]
    reports: tuple[ReportLine, ...] = ()
