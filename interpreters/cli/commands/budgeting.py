"""The command ``budget``: shows balances, and raises budgets."""

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lifefold.core.fleet.board.budget import Raise
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles.budget.amounts import Amounts, Resource
from lifefold.interpreters.cli import awaited, logs, operator_commands
from lifefold.interpreters.cli.commands.deciding import no_agent_left
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.operator_commands import REFUSED, Refused, Said
from lifefold.interpreters.cli.wording import as_typed, clock_time, columns
from lifefold.interpreters.explain.accounts import Balance, balances
from lifefold.interpreters.fleet_file.budget import KEYS
from lifefold.interpreters.fleet_file.values import RefusedError, shortened


def budget(arguments: Namespace) -> int:
    """Print the balance of each budget, or raise one."""
    more = amounts(arguments, "add")
    if more != Amounts():
        return _raise(arguments, more)
    if arguments.reason or arguments.agent or arguments.task:
        raise BadInput("give the amount to add: --add-usd, --add-tokens, --add-time or --add-sessions")
    with logs.peek(arguments.db) as store:
        there = logs.fold(store).aggregates
    found = balances(there)
    if arguments.json:
        print(json.dumps([msgspec.to_builtins(each) for each in found], indent=2))
    elif found:
        rows = (_row(each, goes_on=awaited.goes_on(there)) for each in found)
        print(columns([("WHOSE", "SPENT", "SET ASIDE", "A CLAIM IS GIVEN", "NEXT"), *rows]))
    else:
        print("no budget: the fleet file limits nothing")
    return 0


def _row(each: Balance, *, goes_on: bool) -> tuple[str, ...]:
    refilled = f"refilled at {clock_time(each.refilled_ms / 1_000).rpartition('.')[0]}" if each.refilled_ms else ""
    of = f" --{each.whose} {each.name}" if each.name else ""
    coming = refilled or (as_typed(f"lifefold budget{of} --add-...") if each.is_spent else "")
    return (
        f"{each.whose} {each.name}".strip(),
        each.in_words(),
        budgets.in_words(each.resource, each.set_aside),
        budgets.in_words(each.resource, each.share),
        "; ".join(filter(None, ("spent" if each.is_spent else "", coming if goes_on else ""))) or "-",
    )


def amounts(arguments: Namespace, beginning: str) -> Amounts:
    """Return the amounts of the options ``--BEGINNING-usd`` and so on. Raises ``BadInput`` for an unusable amount."""
    found = Amounts()
    for resource, key in KEYS.items():
        option = f"{beginning}-{key.name}"
        written = getattr(arguments, option.replace("-", "_"))
        if written is not None:
            try:
                meaning = key.form.parse(written if resource is Resource.TIME else _number(written))
            except RefusedError as refused:
                raise BadInput(f"--{option}: found {shortened(written)}; accepted: {refused.accepted}") from refused
            found = found.but(resource, meaning or 0)
    return found


def _number(written: str) -> object:
    """Return the number in a text, or the text itself if it is not a number."""
    try:
        return int(written) if written.isdecimal() else float(written)
    except ValueError:
        return written


def _raise(arguments: Namespace, more: Amounts) -> int:
    if arguments.agent and arguments.task:
        raise BadInput("name an agent or a task, not both; without either the fleet's budget is raised")
    if arguments.reason:
        operator_commands.must_be_text("the reason", arguments.reason)
    ref = budgets.of_agent(arguments.agent) if arguments.agent else budgets.FLEET
    ref = budgets.of_task(arguments.task) if arguments.task else ref
    name = ref.removeprefix("budget:")

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        why = _why_not(aggregates[board.NAME], ref, more)
        event = Raise(more, arguments.reason)
        yield Refused(name, f"{REFUSED}{why}") if why else Said(name, board.NAME, ref, event, "raised")

    return operator_commands.say(arguments.db, judge, "budget")


def _why_not(of: Aggregate, ref: str, more: Amounts) -> str:
    """Return why a budget cannot be raised; empty if it can."""
    entity = of.entities.get(ref)
    if entity is None:
        known = _names([each for each in of.entities if each.startswith("budget:")])
        if not known:
            return "this fleet has no budget"
        return f"{_unlimited(of, ref)}; accepted: {known}"
    limited = {line.resource for line in entity.record.lines}
    unlimited = [key.name for resource, key in KEYS.items() if more.of(resource) and resource not in limited]
    if unlimited:
        are = "are" if len(unlimited) > 1 or unlimited[0] in {"tokens", "sessions"} else "is"
        return f"its {' and '.join(unlimited)} {are} not limited"
    return no_agent_left(of, "nothing more is spent in this log; a new log has the budgets of the fleet file")


def _unlimited(of: Aggregate, ref: str) -> str:
    """Return why there is no such budget: the name is unknown, or the agent or task has no budget of its own."""
    whose, _, name = ref.removeprefix("budget:").partition("/")
    is_there = not name or f"{'worker_slot' if whose == 'agent' else whose}:{name}" in of.entities
    return "it has no budget" if is_there else f"there is no {whose} {name!r}"


def _names(refs: Sequence[str]) -> str:
    return ", ".join(sorted(ref.removeprefix("budget:") for ref in refs))
