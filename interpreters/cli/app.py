"""The ``lifefold`` command: calls the function that the grammar names, and reports errors.

Commands import their modules when they are called, so that ``lifefold --help`` answers at once. The exit codes are
public:

- 0: success;
- 1: something failed;
- 2: bad input;
- 3: an error of lifefold or of the machine;
- 4: held: with ``--no-wait``, only an operator can move the fleet on;
- 130: left before the end.
"""

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from lifefold.interpreters.cli.errors import FOR_ANOTHER, Ambiguous, BadInput, denied, without_passwords
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.cli.joining import as_options

_COMMANDS = "lifefold.interpreters.cli.commands"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. A program without ``argv`` that has used Temporal ends here."""
    try:
        code = _main(argv)
    except BaseException as error:
        if argv is not None or _TEMPORAL not in sys.modules:
            raise
        code = _code_of(error)
    if argv is None and _TEMPORAL in sys.modules:
        _end_at_once(code)
    return code


def _code_of(error: BaseException) -> int:
    """Print an error as Python does at the end of a program, and return the exit code that Python would give."""
    left = error.code if isinstance(error, SystemExit) else 1
    if not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
    elif left is not None and not isinstance(left, int):
        print(left, file=sys.stderr)
    return left if isinstance(left, int) else left is not None


_TEMPORAL: Final = "temporalio.bridge.runtime"
"""The module that is loaded with the threads of Temporal's library."""


def _end_at_once(code: int) -> None:
    """End this process without finalizing the interpreter.

    Threads of Temporal's library would enter the interpreter meanwhile, and Python would end by a signal.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _main(argv: Sequence[str] | None) -> int:
    _ready_to_speak()
    typed = as_options(sys.argv[1:] if argv is None else argv)
    whole = parser()
    if "_ARGCOMPLETE" in os.environ:
        from lifefold.interpreters.cli.completing import complete  # noqa: PLC0415 - only a shell needs it

        complete(whole)
    if typed and not typed[0].startswith("-") and typed[0] not in whole.get_default("known"):
        return _unknown(typed[0], whole.get_default("known"))
    arguments = whole.parse_args(typed)
    if not hasattr(arguments, "command"):
        whole.print_help()
        return 0
    module, _, function = arguments.command.partition(":")
    try:
        with _answered(arguments):
            _with_paths(arguments)
            _must_be_permitted(arguments)
            code = int(getattr(import_module(f"{_COMMANDS}.{module}"), function)(arguments) or 0)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - those that are not foreseen are raised again
        return _failed(error, typed)
    return code


def _answered(arguments: Namespace) -> AbstractContextManager[None]:
    """Deliver the answers of an operator's command as JSON, or with a key."""
    if not hasattr(arguments, "answers") or not (arguments.json or arguments.key):
        return nullcontext()
    from lifefold.interpreters.cli.answers import delivered  # noqa: PLC0415 - slow, and seldom needed

    return delivered(arguments.answers, arguments.key, in_json=arguments.json)


def _with_paths(arguments: Namespace) -> None:
    """Replace addresses of logs on servers by paths."""
    if any("postgres" in str(value) for value in vars(arguments).values()):
        from lifefold.interpreters.cli.server_logs import with_paths  # noqa: PLC0415 - slow, and seldom needed

        with_paths(arguments)


def _must_be_permitted(arguments: Namespace) -> None:
    """Raise ``BadInput`` for a command that a process of a fleet may not give."""
    if any(name.startswith("LIFEFOLD_") for name in os.environ):
        from lifefold.interpreters.cli.inside import must_be_permitted  # noqa: PLC0415 - slow, and seldom needed

        must_be_permitted(arguments)


def _unknown(word: str, commands: Sequence[str]) -> int:
    from lifefold.interpreters.cli.names import like  # noqa: PLC0415 - slow to import, and only a mistake needs it

    meant = " or ".join(f"lifefold {each}" for each in like(word, commands))
    return _complain(
        f"there is no command {word!r}; {f'did you mean {meant}?' if meant else f'see {_this_command()} --help'}", 2
    )


def _failed(error: Exception, typed: Sequence[str]) -> int:
    """Report an error of the command ``typed`` and return its exit code; raise an error of this program again."""
    import sqlite3  # noqa: PLC0415 - slow to import, and only an error needs it

    from lifefold.interpreters.engine import LogMismatchError  # noqa: PLC0415 - as above
    from lifefold.interpreters.store import (  # noqa: PLC0415 - as above
        Busy,
        Full,
        NotAStore,
        StoreError,
        Unreachable,
        Unreliable,
        Unwritable,
    )

    if isinstance(error, BadInput | NotAStore | LogMismatchError):
        again = f":  {_this_command()} {shlex.join(typed)} {error.option}" if isinstance(error, Ambiguous) else ""
        return _complain(f"{error}{again}", 2)
    if isinstance(error, Busy):
        then = "there is room" if isinstance(error, Full) else "that program has ended"
        return _complain(f"{error}; give the command again when {then}", 3)
    if isinstance(error, Unwritable):
        return _complain(f"{error}; {FOR_ANOTHER}", 2)
    if isinstance(error, PermissionError) and error.filename is not None:
        return _complain(denied(error), 2)
    if isinstance(error, StoreError | sqlite3.Error):
        then = "\nlifefold status and lifefold log show the state of the fleet; then try again"
        return _complain(f"{error}{'' if isinstance(error, Unreliable | Unreachable) else then}", 3)
    if isinstance(error, OSError):
        _give_up_output()
        return 0 if isinstance(error, BrokenPipeError) else _complain(error, 3)
    raise error


def _this_command() -> str:
    from lifefold.interpreters.cli.wording import this_command  # noqa: PLC0415 - slow to import, as above

    return this_command()


def _complain(what: object, code: int) -> int:
    from lifefold.interpreters.cli.wording import as_typed  # noqa: PLC0415 - slow to import, and only an error needs it

    print(f"lifefold: {without_passwords(as_typed(str(what)))}", file=sys.stderr)
    return code


def _ready_to_speak() -> None:
    """Make any text printable: as escapes where the encoding lacks a character, discarded if the output is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the program's end
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_up_output() -> None:
    """Discard all further output, because its reader is gone; Python would report an error when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
