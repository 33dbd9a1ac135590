"""The adapters by name: those of lifefold, and those of installed distributions.

A distribution offers an adapter by an entry point in the group ``lifefold.adapters``: a class without arguments, or a
function that returns an adapter. It cannot take the name of an adapter of lifefold. This module alone looks at what is
installed; everything else in this package is pure.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

from lifefold.interpreters.adapters.acp import Acp
from lifefold.interpreters.adapters.adapter import Adapter
from lifefold.interpreters.adapters.aider import Aider
from lifefold.interpreters.adapters.claude import Claude
from lifefold.interpreters.adapters.codex import Codex
from lifefold.interpreters.adapters.command import COMMAND, Command
from lifefold.interpreters.adapters.gemini import Gemini
from lifefold.interpreters.adapters.opencode import Opencode

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

GROUP: Final = "lifefold.adapters"
"""The group of entry points."""

SHIPPED: Final[dict[str, Adapter[Any]]] = {
    each.name: each for each in (Claude(), Codex(), Opencode(), Gemini(), Aider(), Command(), Acp())
}
"""The adapters of lifefold."""


class AdapterError(ValueError):
    """There is no such adapter, or it cannot be loaded; the message says what is accepted."""


def adapter_names() -> tuple[str, ...]:
    """Return the names of all adapters, those of lifefold first."""
    return (*SHIPPED, *sorted(_installed().names - SHIPPED.keys()))


def _installed() -> "EntryPoints":
    """Return the entry points of the adapters that other packages have."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import, and most fleets name none of them

    return entry_points(group=GROUP)


def is_adapter(name: str) -> bool:
    """Tell whether there is an adapter with this name."""
    return name in SHIPPED or name in _installed().names


def adapter_of(name: str) -> Adapter[Any]:
    """Return the adapter with this name, and raise ``AdapterError`` without one."""
    if name in SHIPPED:
        return SHIPPED[name]
    points = tuple(_installed().select(name=name))
    if not points:
        names = adapter_names()
        close = get_close_matches(name, names, n=1)
        hint = f'; did you mean "{close[0]}"?' if close else ""
        raise AdapterError(f"there is no adapter {name}; accepted: {', '.join(names)}{hint}")
    if len({point.value for point in points}) > 1:
        raise AdapterError(f"{name} names several adapters: {', '.join(sorted(point.value for point in points))}")
    try:
        make = cast("Callable[[], Adapter[Any]]", points[0].load())
        made = make()
    except Exception as error:
        raise AdapterError(f"the adapter {name} ({points[0].value}) cannot be loaded: {error!r}") from error
    if missing := [part for part in _PARTS if not hasattr(made, part)]:
        raise AdapterError(f"the adapter {name} ({points[0].value}) has no {', '.join(missing)}")
    return made


def adapter_or_command(name: str) -> Adapter[Any]:
    """Return the adapter with this name; that of a command, if there is none or it cannot be loaded."""
    try:
        return adapter_of(name)
    except AdapterError:
        return SHIPPED[COMMAND]


_PARTS: Final = (
    "name", "initial", "resumable", "chooses_conversation", "reports", "tested_versions", "version_argv",
    "argv", "read", "finish",
)  # fmt: skip
