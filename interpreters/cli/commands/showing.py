"""The commands ``machines``, ``table`` and ``diagram``."""

import json
import sys
from argparse import Namespace
from typing import Any

from lifefold.core.kernel import Machine, System
from lifefold.interpreters import views
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.views.picture import LayoutMissingError


def machines(arguments: Namespace) -> None:
    """Print the known lifecycles and systems."""
    kinds = {**dict.fromkeys(views.machines(), "machine"), **dict.fromkeys(views.systems(), "system")}
    known = [{"name": name, "kind": kind, "about": views.about()[name]} for name, kind in kinds.items()]
    if arguments.json:
        print(json.dumps(known, indent=2))
        return
    width = max(len(each["name"]) for each in known)
    for each in known:
        print(f"{each['name']:<{width}}  {each['kind']:<7}  {each['about']}")


def table(arguments: Namespace) -> None:
    """Print a transition table."""
    machine = _machine(arguments.machine)
    match arguments.format:
        case "json":
            print(json.dumps(views.table_rows(machine), indent=2))
        case "markdown":
            print(views.markdown(machine), end="")
        case _:
            sys.stdout.write(views.plain(machine))


def diagram(arguments: Namespace) -> None:
    """Print the state diagram of a machine, or the wiring of a system."""
    try:
        print(views.draw(_subject(arguments.machine), arguments.format).rstrip("\n"))
    except (views.UnknownNameError, LayoutMissingError) as error:
        raise BadInput(f"--format {arguments.format}: {error}") from error


def _machine(name: str) -> Machine[Any]:
    subject = _subject(name)
    if isinstance(subject, Machine):
        return subject
    known = dict.fromkeys(machine for each in subject.aggregates.values() for machine in each.machines)
    raise BadInput(f"{name} is a system, not a machine; its machines are {', '.join(known)}")


def _subject(name: str) -> Machine[Any] | System:
    """Return the machine or system of a name, or of ``module:attribute``. A small fleet has the rules of ``fleet``."""
    if name in views.systems():
        return views.systems()[name]
    from lifefold.interpreters.targets import check_targets  # noqa: PLC0415 - takes a while
    from lifefold.interpreters.targets.target import UnusableTarget  # noqa: PLC0415 - as above

    try:
        is_found = ":" in name or name.startswith("fleet")
        return check_targets.named(name).subject if is_found else views.machine_named(name)
    except (UnusableTarget, views.UnknownNameError) as error:
        raise BadInput(str(error)) from error
