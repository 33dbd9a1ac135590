"""Tests of your own lifecycles: strategies, laws, an exhaustive harness, conformance kits."""

from lifefold.interpreters.testing.account import Aspect
from lifefold.interpreters.testing.adapters import (
    ADAPTER_CHECKS,
    AdapterBench,
    AdapterCheck,
    AdapterConformance,
    Recording,
)
from lifefold.interpreters.testing.evolution import EvolutionError, OldLog, check_evolution
from lifefold.interpreters.testing.harness import Harness
from lifefold.interpreters.testing.interpreters import (
    INTERPRETER_CHECKS,
    Bench,
    Example,
    InterpreterCheck,
    InterpreterConformance,
)
from lifefold.interpreters.testing.laws import LawBrokenError, check_laws
from lifefold.interpreters.testing.refinement import ForeignEntry, foreign_entry, is_behaviour
from lifefold.interpreters.testing.run import OpeningRefusedError
from lifefold.interpreters.testing.stores import STORE_CHECKS, Log, StoreCheck, StoreConformance, check_store
from lifefold.interpreters.testing.strategies import events, systems, traces
from lifefold.interpreters.testing.trace import Taken, Trace

__all__ = [
    "ADAPTER_CHECKS",
    "INTERPRETER_CHECKS",
    "STORE_CHECKS",
    "AdapterBench",
    "AdapterCheck",
    "AdapterConformance",
    "Aspect",
    "Bench",
    "EvolutionError",
    "Example",
    "ForeignEntry",
    "Harness",
    "InterpreterCheck",
    "InterpreterConformance",
    "LawBrokenError",
    "Log",
    "OldLog",
    "OpeningRefusedError",
    "Recording",
    "StoreCheck",
    "StoreConformance",
    "Taken",
    "Trace",
    "check_evolution",
    "check_laws",
    "check_store",
    "events",
    "foreign_entry",
    "is_behaviour",
    "systems",
    "traces",
]
