"""Reports without secrets: every event and error of a handler is redacted before it enters the log."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, TypeGuard

import msgspec

from lifefold.core.kernel import Event
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter, Unreached
from lifefold.interpreters.engine.failures import is_failure, said
from lifefold.interpreters.engine.interpreter import ActivityHandler, EffectHandler
from lifefold.interpreters.fleet_file.values import as_table
from lifefold.interpreters.fleet_runner.redaction import Secrets


def quoting(interpreter: Interpreter, secrets: Secrets) -> Interpreter:
    """Return an interpreter with the same handlers, whose reports contain no value of a secret."""
    activities = {kind: _quoting(handler, secrets) for kind, handler in interpreter.activities.items()}
    effects = {kind: _quoting_errors(handler, secrets) for kind, handler in interpreter.effects.items()}
    return Interpreter(effects, activities, interpreter.on_error)


class HiddenError(Exception):
    """An error of a handler with a secret in its message; this message has the type and the redacted text."""


@contextmanager
def _hiding(secrets: Secrets) -> Generator[None]:
    """Redact errors that enter the log."""
    try:
        yield
    except Unreached:
        raise
    except Exception as error:
        hidden = secrets.hidden(said(error))
        if hidden == said(error) or not is_failure(error):
            raise
        raise HiddenError(hidden) from error


def _quoting_errors(handler: EffectHandler, secrets: Secrets) -> EffectHandler:
    @wraps(handler)
    async def handle(effect: Any, context: EffectContext) -> None:
        with _hiding(secrets):
            await handler(effect, context)

    return handle


def _quoting(handler: ActivityHandler, secrets: Secrets) -> ActivityHandler:
    async def handle(activity: Any, context: ActivityContext) -> None:
        with _hiding(secrets):
            await handler(activity, _Reporting(context, secrets))

    return handle


class _Reporting(ActivityContext):
    """An activity context that redacts reports."""

    __slots__ = ("_of", "_secrets")

    def __init__(self, of: ActivityContext, secrets: Secrets) -> None:
        # All other attributes are read from the original, because ``ending`` changes while a handler runs.
        self._of: Final = of
        self._secrets: Final = secrets

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    async def report(self, event: Event) -> bool:
        """Report a redacted event."""
        return await self._of.report(without(event, self._secrets))


def without(value: Any, secrets: Secrets) -> Any:
    """Return a value with names in place of the values of secrets, also in its parts; itself if it has none."""
    if isinstance(value, str) and type(value) is str:
        return secrets.hidden(value)
    if _is_tuple(value):
        return tuple(without(each, secrets) for each in value)
    if (table := as_table(value)) is not None:
        return {key: without(each, secrets) for key, each in table.items()}
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        hidden = {name: without(each, secrets) for name, each in fields.items()}
        return value if hidden == fields else msgspec.structs.replace(value, **hidden)
    return value


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)
