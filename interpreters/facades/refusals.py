"""The base of the errors of facades: they can be copied and pickled with all their attributes."""

from collections.abc import Callable
from typing import Any


class Refusal(Exception):
    """Base of errors with more arguments than their text. A pool of processes can pass them on unchanged."""

    def __reduce__(self) -> tuple[Callable[..., BaseException], tuple[Any, ...]]:
        """Return a call that makes an equal error, without its constructor."""
        return _again, (type(self), self.args, vars(self))


def _again(kind: type[BaseException], args: tuple[object, ...], carried: dict[str, object]) -> BaseException:
    error = kind.__new__(kind, *args)
    vars(error).update(carried)
    return error
