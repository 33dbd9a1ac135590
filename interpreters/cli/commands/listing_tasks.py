"""The command ``tasks``: the tasks of a fleet, those that need an operator first where not all fit."""

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.cli import awaited, logs
from lifefold.interpreters.cli.account import usage_json
from lifefold.interpreters.cli.attention import begins, in_words, mood
from lifefold.interpreters.cli.colours import painted
from lifefold.interpreters.cli.fitting import fitted, terminal_height, terminal_width
from lifefold.interpreters.cli.pager import is_coloured
from lifefold.interpreters.cli.table_columns import with_column, with_cost, without_hyphens
from lifefold.interpreters.cli.wording import as_typed, coming
from lifefold.interpreters.explain import task_status
from lifefold.interpreters.explain.chronicle_words import Mood
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.explain.words import unwrapped


def tasks(arguments: Namespace) -> None:
    """Print the tasks."""
    with logs.peek(arguments.db, arguments.at) as store:
        ledger, account = logs.fold_with_account(store)
        now_ms, then = logs.now_ms(store), logs.then(store)
    there = ledger.aggregates
    found = account.attempted(task_status.tasks(there)) if there else ()
    shown = found if awaited.goes_on(there) else task_status.at_rest(found)
    usages = [account.spending.of_task(task.id) for task in found]
    if arguments.json:
        pairs = zip(found, usages, strict=True)
        print(json.dumps([{**msgspec.to_builtins(task), **usage_json(usage)} for task, usage in pairs], indent=2))
        return
    costs = dict(zip([task.id for task in found], usages, strict=True))
    height = None if arguments.all else terminal_height()
    if then:
        print(then)
    for line in task_lines(shown, costs, terminal_width(), height, now_ms):
        print(line)


def _place(task: TaskStatus) -> str:
    return f"on branch {task.branch}" if task.branch else ""


def _asked(task: TaskStatus) -> str:
    return f"{task.owner} asks {', '.join(task.asks)}" if task.asks else ""


def task_lines(
    every: Sequence[TaskStatus], costs: Mapping[str, Usage], width: int | None, height: int | None, now_ms: int
) -> Iterator[str]:
    """Yield the table of the tasks. A terminal gets those that need an operator first, and the others counted."""
    shown, rest = begins(every, None if height is None else height - 1)
    rows: list[tuple[str, ...]] = [
        ("TASK", "STATE", "AGENT", "ATTEMPT", "RETRIES", "AFTER", "COMMIT", "NEXT", "REASON"),
        *(
            (
                task.id,
                task.in_words,
                task.owner or "-",
                str(task.attempts or "-"),
                f"{task.retries}/{task.max_retries}",
                ",".join(task.depends_on) or "-",
                task.commit[:10] or "-",
                coming(task.timer, now_ms),
                unwrapped(task.held_up.removeprefix("blocked ") or task.reason) or _place(task) or _asked(task) or "-",
            )
            for task in shown
        ),
    ]
    rows = with_column(rows, "TRUST", [task.level or "-" for task in shown], rows[0].index("AFTER"))
    rows = with_cost(rows, [costs[task.id] for task in shown], rows[0].index("COMMIT"))
    for head in ("AGENT", "NEXT", "AFTER") if width is not None else ():
        rows = without_hyphens(rows, head)
    first_out = ("COMMIT", "AFTER", "TRUST", "RETRIES", "COST", "NEXT")
    table = fitted(rows, width, first_out=first_out, shortened=("REASON", "TASK", "AGENT"), note=False)
    moods = [Mood.PLAIN, *map(mood, shown)]
    for line, its_mood in zip(table.splitlines(), moods, strict=True):
        yield painted(line, its_mood, colours=is_coloured())
    if rest:
        yield as_typed(f"and {in_words(rest)}; lifefold tasks --all has them")
