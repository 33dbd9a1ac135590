"""lifefold: lifecycles as pure reducers, checked, simulated, run with a durable log, and replayed.

These are the public names. Each is imported at its first use, so ``import lifefold`` costs nothing. The search of
``check`` needs its extra (``lifefold[check]``) only when it is called. Everything else is one level down:
``lifefold.core``, ``lifefold.effects`` and ``lifefold.interpreters``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lifefold.core.kernel import (
        ANY,
        STAY,
        AggregateType,
        Envelope,
        Event,
        Machine,
        Record,
        State,
        Step,
        System,
        after,
        alone,
        always,
        always_step,
        does,
        eventually,
        leads_to,
        removed,
        removed_field,
        renamed,
        renamed_field,
        replace,
        row,
        rule,
        sometimes,
        strongly,
        upcast,
        weakly,
    )
    from lifefold.effects import Activity, Effect
    from lifefold.interpreters.check import check
    from lifefold.interpreters.engine import Engine, Interpreter, Ledger, handles
    from lifefold.interpreters.simulate import simulate
    from lifefold.interpreters.store import MemoryStore, SqliteStore

__version__: str

__all__ = [
    "ANY", "STAY", "Activity", "AggregateType", "Effect", "Engine", "Envelope", "Event", "Interpreter", "Ledger",
    "Machine", "MemoryStore", "Record", "SqliteStore", "State", "Step", "System", "__version__", "after", "alone",
    "always", "always_step", "check", "does", "eventually", "handles", "leads_to", "removed", "removed_field",
    "renamed", "renamed_field", "replace", "row", "rule", "simulate", "sometimes", "strongly", "upcast", "weakly",
]  # fmt: skip

_HOMES: Final = {
    "lifefold.core.kernel": (
        "ANY STAY AggregateType Envelope Event Machine Record State Step System after alone always always_step does"
        " eventually leads_to removed removed_field renamed renamed_field replace row rule sometimes strongly upcast"
        " weakly"
    ),
    "lifefold.effects": "Activity Effect",
    "lifefold.interpreters.check": "check",
    "lifefold.interpreters.engine": "Engine Interpreter Ledger handles",
    "lifefold.interpreters.simulate": "simulate",
    "lifefold.interpreters.store": "MemoryStore SqliteStore",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name from its module. Raises ``AttributeError`` for any other name."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow to import, and every command would wait for it

        return version("lifefold")
    if name not in _HOME_OF:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
