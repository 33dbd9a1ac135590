"""The command ``serve``: the desk of operators for browsers, until Ctrl-C."""

import os
import sys
import threading
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.desk import registry
from lifefold.interpreters.store import NotAStore

if TYPE_CHECKING:
    from lifefold.interpreters.web.server import Opened

NICENESS: Final = 5
"""How far the desk steps back behind other processes: where cores are short, a page waits and not the runner."""

_PACKAGES = frozenset({"jinja2", "markupsafe", "sse_starlette", "starlette", "uvicorn"})
"""The packages of the extra ``web``."""


def _leave_with_input(desk: "Opened") -> None:
    """End the desk when the standard input ends, which a runner holds open."""
    while sys.stdin.buffer.read(1):
        pass
    desk.leave()


def logs_of_machine() -> list[Path]:
    """Return the logs of this machine, as ``lifefold fleets`` has them, and then those of this folder."""
    noted = [Path(each.log) for each in registry.found()]
    here = [Path(os.path.realpath(each)) for each in logs.latest_logs()]
    return list(dict.fromkeys((*noted, *here)))


def serve(arguments: Namespace) -> None:
    """Serve the desk of some logs, and of some reports."""
    try:
        from lifefold.interpreters.web import server  # noqa: PLC0415 - needs an extra
        from lifefold.interpreters.web.reports import Reports, is_report  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise BadInput(f"lifefold serve needs the package {error.name}: pip install 'lifefold[web]'") from error
    paths = [logs.named(each) for each in arguments.logs]
    reports = [each for each in paths if is_report(each)]
    for problem in Reports(reports).problems():
        raise BadInput(problem)
    named = [each for each in paths if each not in reports]
    find = None if paths else logs_of_machine
    if not server.is_loopback(arguments.host):
        print(
            f"warning: {arguments.host} may be reached from other machines; nothing is encrypted",
            file=sys.stderr,
        )
    try:
        with server.opened(named, arguments.host, arguments.port, arguments.allow_host, find, reports) as desk:
            print(f"the desk is at  {desk.address}")
            print(f"Ctrl-C ends it; its token is in {desk.token.file}, which only this user can read", flush=True)
            if arguments.beside:
                threading.Thread(target=_leave_with_input, args=(desk,), daemon=True).start()
            os.nice(NICENESS)
            desk.run()
    except (NotAStore, server.NotServed) as error:
        raise BadInput(str(error)) from error
