"""What the errors of handles have in common: they can be copied and pickled with all that they carry."""

from collections.abc import Callable
from typing import Any


class Refusal(Exception):
    """Base of errors that are made of more than their text. A pool of processes hands them on as they are."""

    def __reduce__(self) -> tuple[Callable[..., BaseException], tuple[Any, ...]]:
        """Return what makes the same error again, without its constructor."""
        return _again, (type(self), self.args, vars(self))


def _again(kind: type[BaseException], args: tuple[object, ...], carried: dict[str, object]) -> BaseException:
    error = kind.__new__(kind, *args)
    vars(error).update(carried)
    return error
