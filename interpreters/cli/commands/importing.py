"""The command ``import``: a machine of another program as a Python module to complete."""

import sys
from argparse import Namespace
from pathlib import Path

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.written import see_to, write
from lifefold.interpreters.views.statechart import UnusableStatechart
from lifefold.interpreters.views.xstate_import import module_of


def import_(arguments: Namespace) -> None:
    """Print or write the module. Raises ``BadInput``."""
    path = Path(arguments.file)
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    if arguments.to is not None:
        see_to(Path(arguments.to), "module", lambda _text: False)
    try:
        source = module_of(path.read_text(encoding="utf-8"))
    except (UnusableStatechart, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from error
    if arguments.to is None:
        sys.stdout.write(source)
    else:
        write(Path(arguments.to), source.encode(), is_quiet=False)
