"""Agents of a fleet file whose ``kind`` is an adapter: the program, its model, its permissions, its arguments.

Such an agent has no command: its adapter makes one for each session (docs/adapters.md). The program must exist when the
file is read, like that of a command. A budget in US dollars needs an agent that reports dollars.
"""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any, Final

from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.adapters import (
    Adapter,
    AdapterError,
    Brief,
    Permissions,
    Reports,
    adapter_names,
    adapter_of,
    is_adapter,
)
from lifefold.interpreters.adapters.adapter import Spoken
from lifefold.interpreters.fleet_file import forms
from lifefold.interpreters.fleet_file.command import literal, settled_command, what_is_wrong_with
from lifefold.interpreters.fleet_file.forms import Form, array_of
from lifefold.interpreters.fleet_file.keys import Key, said, said_but_defaults
from lifefold.interpreters.fleet_file.model import Agent, AgentProgram, Fleet
from lifefold.interpreters.fleet_file.table import Table
from lifefold.interpreters.fleet_file.values import shown

OWN_KINDS: Final = ("command", "python", "service")
"""The kinds that are no agent program."""

_SHOWN: Final = ("claude", "codex", "opencode", "gemini", "aider", "acp")


def _kinds() -> tuple[str, ...]:
    """Return all kinds: the adapter ``command`` is one of lifefold's own."""
    return tuple(dict.fromkeys((*OWN_KINDS, *adapter_names())))


def _kind(value: object) -> str | None:
    return value if isinstance(value, str) and (value in OWN_KINDS or is_adapter(value)) else None


KIND: Form[str] = Form(
    f"{' or '.join(map(shown, (*OWN_KINDS, *_SHOWN)))} or the name of an installed adapter",
    " or ".join(f'`"{each}"`' for each in (*OWN_KINDS, *_SHOWN)),
    {"type": "string", "pattern": r"^[^\s]+$", "examples": [*OWN_KINDS, *_SHOWN]},
    _kind,
)
"""The kinds of agents."""


def refuse_kind(table: Table) -> bool:
    """Report a kind that does not exist, with the nearest one; tell whether it was so.

    The other keys of such a table are not judged: the kind decides which are accepted.
    """
    value = table.values.get(kind.name, kind.default)
    if _kind(value) is not None:
        return False
    hint = forms.meant(value, _kinds()) if isinstance(value, str) else ""
    accepted = " or ".join(map(shown, _kinds()))
    table.problem(kind.name, f"found {shown(value)}; accepted: {accepted}{hint}")
    return True


def of_other_kinds(keys: Mapping[str, Key[Any]], of: str, name: str) -> str:
    """Return which kinds have a key that agents of the kind ``of`` do not have; empty if it is no key of agents."""
    key = keys.get(name)
    if key is None or _has(key, of):
        return ""
    has = " or ".join(shown(each) for each in _kinds() if _has(key, each))
    return f" for kind {shown(of)}; {name} belongs to kind {has}"


def _has(key: Key[Any], of: str) -> bool:
    if key.when[:1] == (kind.name,):
        return of in key.when[1:]
    return key.unless[:1] != (kind.name,) or of not in key.unless[1:]


IS_NO_PROGRAM: Final = ("kind", *OWN_KINDS)

ARGUMENTS: Final = array_of(forms.TEXT, forms.STRINGS.accepted, forms.STRINGS.brief)

PERMISSIONS: Form[Permissions] = forms.choice(Permissions.READ, Permissions.EDIT, Permissions.ALL)

kind = Key(
    KIND,
    "a command, an agent of your own in Python, a service (a command that runs for its triggers), or an agent program;"
    " see [agents by kind](fleet/agents.md)",
    "command",
)
model = Key(forms.TEXT, "the model of an agent program, in the program's own words", "", unless=IS_NO_PROGRAM)
permissions = Key[Permissions](
    PERMISSIONS,
    "what an agent program may do without asking: look, change files, or everything",
    Permissions.DEFAULT,
    absent="the program's own settings",
    unless=IS_NO_PROGRAM,
)
args = Key[tuple[str, ...]](
    ARGUMENTS, "further arguments of an agent program, as they are, before the prompt", (), unless=IS_NO_PROGRAM
)
program = Key(
    forms.TEXT,
    "the program in place of the one on PATH: a name, or a path from the folder of the fleet file",
    "",
    unless=IS_NO_PROGRAM,
)


def read_program(
    table: Table, name: str, folder: Path, env: Mapping[str, str]
) -> tuple[AgentProgram | None, tuple[str, ...]]:
    """Return the program of an agent of the kind ``name``, with its command of one word; report what is wrong.

    An agent whose kind is no adapter has none, and no command here.
    """
    if name in OWN_KINDS:
        return None, ()
    found = AgentProgram(name, table.read(model), table.read(permissions), table.read(args), table.read(program))
    try:
        adapter = adapter_of(name)
        own = _program_of(adapter)
    except AdapterError as error:
        table.problem(kind.name, str(error))
        return None, ()
    if isinstance(adapter, Spoken) and not _can_speak(table, adapter, found):
        return found, ()
    command = settled_command((literal(found.path or own),), folder)
    if wrong := what_is_wrong_with(command[0], env):
        if found.path:
            accepted = "a program on PATH, or the path of one, from the fleet file's folder; it must be executable"
            table.problem(program.name, f"found {shown(found.path)}, which {wrong}; accepted: {accepted}")
        else:
            accepted = "a kind whose program is on PATH, or program with the path of one; it must be executable"
            table.problem(kind.name, f"found {shown(name)}, whose program {shown(own)} {wrong}; accepted: {accepted}")
    return found, command


def own_account(of: AgentProgram | None) -> str:
    """Return the account of an agent without the key: its kind, or the program that speaks a protocol."""
    if of is None:
        return ""
    return PurePath(of.path).name if isinstance(adapter_of(of.adapter), Spoken) else of.adapter


def _can_speak(table: Table, adapter: Spoken, found: AgentProgram) -> bool:
    """Report what an adapter of a protocol lacks: the package of its client, or the program to run."""
    if find_spec(adapter.package) is None:
        needs = f"which needs a package that is not installed; accepted: after pip install 'lifefold[{adapter.extra}]'"
        table.problem(kind.name, f"found {shown(found.adapter)}, {needs}")
    elif not found.path:
        missing = "is missing; accepted: the program that speaks the protocol, with its arguments in args"
        table.problem(program.name, missing)
    else:
        return True
    return False


def _program_of(adapter: Adapter[Any]) -> str:
    """Return the name of an adapter's program. Raises ``AdapterError`` for an adapter that makes no command line."""
    try:
        return adapter.argv(Brief("-"), None)[0]
    except Exception as error:  # an adapter may be of another distribution
        raise AdapterError(f"the adapter {adapter.name} makes no command line: {error!r}") from error


def said_program(of: AgentProgram) -> dict[str, object]:
    """Return the program of an agent in the form of a file."""
    meanings: dict[Key[Any], object] = {
        model: of.model,
        permissions: of.permissions,
        args: of.arguments,
        program: of.path,
    }
    return said({kind: of.adapter}) | said_but_defaults(meanings)


def report_unpriced(root: Table, fleet: Fleet, agents: Iterable[Agent], tasks: Iterable[TaskPlan]) -> None:
    """Report the agent programs that name no money, although a budget in US dollars limits them.

    A program that reports nothing at all is charged its reservation with ``unreported = "share"``. One that reports
    tokens is not silent: the price of the agent's model turns them into dollars.
    """
    limits_all = any(caps.microusd is not None for caps in (fleet.budget.caps, *(each.caps for each in tasks)))
    limited = [each for each in agents if limits_all or each.caps.microusd is not None]
    found = [(each.program.adapter, each.program.model) for each in limited if each.program is not None]
    for name, of_model in dict.fromkeys(found):
        match adapter_of(name).reports:
            case Reports.TOKENS if of_model not in fleet.prices:
                priced = f"[[prices]] for model = {shown(of_model)}" if of_model else "a model with [[prices]]"
                why = f"reports tokens and no money; accepted: {priced}, or a budget of tokens, time or sessions"
            case Reports.NOTHING if not fleet.budget.charges_the_silent:
                why = 'reports no cost; accepted: unreported = "share" under [fleet.budget], or a budget without usd'
            case _:
                continue
        root.problem("agents", f"a budget limits kind {name} in US dollars, and that program {why}")
