"""ITF traces as ``itf-py`` reads them. The library has no types, so its values are ``Any``."""

import json
from importlib import import_module
from typing import Any, Final

_library: Final[Any] = import_module("itf_py")


def trace_in(text: str) -> Any:
    """Return the trace in the text of a file."""
    return _library.trace_from_json(json.loads(text))


def value_of(value: object) -> Any:
    """Return the value that a part of a trace stands for."""
    return _library.value_from_json(value)
