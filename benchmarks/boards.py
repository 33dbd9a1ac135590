"""Ten thousand agents on one board and on several: where a board is at its limit, and that several boards are not.

First the costs of a commit, of an entry and of a message are measured, on a server of Temporal with a log on
PostgreSQL. Then a cluster with these costs is simulated in virtual time (``busy_brain``). A board has a brain with a
core of its own. With the same costs and the same seed a simulation is the same.

``python -m benchmarks.boards --help`` has the sizes of a simulation of one's own.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean
from time import perf_counter, process_time
from typing import Final, NamedTuple

import anyio

from benchmarks import on_temporal
from benchmarks.busy_brain import BusyBrain, Costs, Load, Moment, Outcome
from benchmarks.cluster import Found, Logs, postgres_here, temporal_here
from benchmarks.host import must_be_a_disk
from benchmarks.report import Report, Table, Target, plain
from benchmarks.sampling import percentile
from lifefold.interpreters.targets.fleet_plans import MINUTE_MS
from lifefold.interpreters.temporal.connection import OFFER, Cluster
from lifefold.interpreters.temporal.wire import aggregate_id
from temporal_server import TemporalServer

AGENTS: Final = 10_000
BOARDS: Final = (1, 5, 20)
SESSION_MIN: Final = 5
UNTIL_MIN: Final = 12
LAST_MIN: Final = 4
"""The end of a run, of which the rates and waits are."""

EVERY_MIN: Final = 2
SECOND_MS: Final = 1_000
MOST_BUSY: Final = 0.95
"""A brain that is busy for a greater share of the last minutes is at its limit."""


class Sizes(NamedTuple):
    """The sizes of a simulation. Times are in virtual minutes."""

    agents: int = AGENTS
    boards: tuple[int, ...] = BOARDS
    session_min: float = SESSION_MIN
    until_min: int = UNTIL_MIN
    last_min: int = LAST_MIN
    seed: int = 0


class Split(NamedTuple):
    """All agents on a number of boards. Rates and waits are those of the last minutes, over all boards."""

    boards: int
    moments: tuple[Moment, ...]
    """The sums over the boards, minute by minute."""
    outcomes: tuple[Outcome, ...]
    busy: float
    """The share of the time in which the busiest brain is busy."""
    waits_ms: tuple[int, ...]


def split(boards: int, sizes: Sizes, costs: Costs) -> Split:
    """Simulate all boards, one after the other. Boards share nothing in this simulation."""
    last_ms, until_ms = sizes.last_min * MINUTE_MS, sizes.until_min * MINUTE_MS
    outcomes: list[Outcome] = []
    for number in range(boards):
        agents = sizes.agents // boards + (number < sizes.agents % boards)
        load = Load(agents, int(sizes.session_min * MINUTE_MS), until_ms, sizes.seed + number)
        outcomes.append(BusyBrain(load, costs).run(last_ms))
    moments = tuple(_sum(each) for each in zip(*(each.moments for each in outcomes), strict=True))
    waits_ms = tuple(sorted(wait for each in outcomes for wait in each.late_waits_ms))
    return Split(boards, moments, tuple(outcomes), max(each.late_busy_ms for each in outcomes) / last_ms, waits_ms)


def _sum(moments: Sequence[Moment]) -> Moment:
    return Moment(moments[0].at_ms, *(sum(column) for column in list(zip(*moments, strict=True))[1:]))


def measure(folder: Path, sizes: Sizes = Sizes()) -> Report:  # noqa: B008 - an immutable value
    """Measure the costs, simulate all splits with them, and report."""
    must_be_a_disk(folder)
    found = Found()
    with tempfile.TemporaryDirectory(dir=folder) as own, ExitStack() as stack:
        postgres, temporal = postgres_here(stack, found), temporal_here(stack, found)
        if temporal is None:
            return Report("boards", (), (), tuple(f"Not measured: {why}" for why in found.missing))
        found_here = anyio.run(measured, temporal, Logs(Path(own), postgres), postgres is not None)
    return report(found_here, sizes)


AGENTS_TOGETHER: Final = 8
SESSIONS: Final = 3
BURST: Final = 2_000
SENT: Final = 100
QUICK: Final = 10
"""The percentile of times by the clock that is taken: on a busy machine, the usual time is mostly that of others."""


class Measured(NamedTuple):
    """What an entry costs on this machine.

    ``server_ms`` is the processor time of the server of Temporal, ``history_events`` what its history has for each.
    """

    costs: Costs
    server_ms: float = 0.0
    history_events: float = 0.0


async def measured(temporal: TemporalServer, logs: Logs, is_on_a_server: bool) -> Measured:  # noqa: FBT001 - as the logs have it
    """Measure what a commit, an entry, a turn and a message cost.

    Of commits and entries that is processor time of a brain and a host, so the load of the machine counts less.
    """
    client = await temporal.client()
    with logs.new(is_on_a_server=is_on_a_server) as store:
        alone = on_temporal.Clustered(1, SESSIONS)
        await on_temporal.live(alone, client, store)
        workflow = client.get_workflow_handle(aggregate_id(f"agents-{id(alone)}", alone.names[0]))
        history_events = len((await workflow.fetch_history()).events) / len(await store.read())
    with logs.new(is_on_a_server=is_on_a_server) as store:
        begin_s, server_s = process_time(), processor_s(temporal.pid)
        await on_temporal.live(on_temporal.Clustered(AGENTS_TOGETHER, SESSIONS), client, store)
        entries = len(await store.read())
        commit_ms = SECOND_MS * (process_time() - begin_s) / entries
        server_ms = SECOND_MS * (processor_s(temporal.pid) - server_s) / entries
    with logs.new(is_on_a_server=is_on_a_server) as store:
        turns = on_temporal.Turns(client, store, "costs")
        async with on_temporal.running(turns.brain):
            await turns.open(AGENTS_TOGETHER)
            begin_s = process_time()
            await turns.burst(BURST, 1)
            entry_ms = SECOND_MS * (process_time() - begin_s) / BURST
            send_ms = await sending_ms(Cluster(client, "costs"))
            await turns.close(AGENTS_TOGETHER)
    turn_ms = SECOND_MS * percentile(alone.latencies_s, QUICK)
    costs = Costs(*(round(each, 2) for each in (commit_ms, entry_ms, turn_ms, send_ms)))
    return Measured(costs, server_ms, history_events)


def processor_s(pid: int) -> float:
    """Return the processor time of another process in seconds. Linux only."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def sending_ms(cluster: Cluster) -> float:
    """Return what a message to the workflow of an aggregate costs, one after the other, in milliseconds."""
    took_s: list[float] = []
    for number in range(SENT):
        start_s = perf_counter()
        await cluster.signal(f"turn/{number % AGENTS_TOGETHER:05}", OFFER, [])
        took_s.append(perf_counter() - start_s)
    return SECOND_MS * percentile(took_s, QUICK)


COSTS: Final = (
    "a commit with one entry, processor time of brain and host",
    "each further entry of a commit, processor time",
    "a turn: from an event to its effect, if nothing else waits",
    "a message to the workflow of another aggregate",
)
SERVER: Final = "an entry, processor time of the server of Temporal"
HISTORY: Final = "an entry, events in the history of Temporal"


def report(measured: Measured, sizes: Sizes) -> Report:
    """Simulate all splits, and report."""
    splits = [split(boards, sizes, measured.costs) for boards in sizes.boards]
    costs = [(name, f"{ms:.2f} ms") for name, ms in zip(COSTS, measured.costs, strict=True)]
    costs += [(SERVER, f"{measured.server_ms:.2f} ms"), (HISTORY, f"{measured.history_events:.1f}")]
    each = splits[0].outcomes
    tasks, inputs = sum(one.closed for one in each), sum(one.inputs for one in each)
    tables = (
        Table("What the parts cost", ("", "measured"), tuple(costs)),
        Table(
            f"{sizes.agents:,} agents with sessions of {sizes.session_min:g} minutes,"
            f" minutes {sizes.until_min - sizes.last_min} to {sizes.until_min}",
            (
                "boards", "agents of a board", "entries per s", "busiest brain", "wait p50, s", "wait p95, s",
                "agents in a session", "tasks closed per min",
            ),
            tuple(_row(one, sizes) for one in splits),
        ),
        Table(
            "Inputs that wait, over all boards",
            ("minute", *(f"{one.boards} boards" if one.boards > 1 else "1 board" for one in splits)),
            tuple(_waiting(splits)),
        ),
    )  # fmt: skip
    note = (
        f"Seed {sizes.seed}. {inputs:,} entries of one board for {tasks:,} closed tasks, openings of workers included."
    )
    return Report("boards", tables, tuple(_targets(splits)), (note,))


def _row(one: Split, sizes: Sizes) -> tuple[str, ...]:
    last_s, begin = sizes.last_min * MINUTE_MS / SECOND_MS, one.moments[-1 - sizes.last_min]
    end, late = one.moments[-1], one.moments[-sizes.last_min :]
    return (
        f"{one.boards}",
        f"{sizes.agents / one.boards:,.0f}",
        f"{(end.inputs - begin.inputs) / last_s:,.0f}",
        f"{100 * one.busy:.0f} %",
        f"{percentile(one.waits_ms, 50) / SECOND_MS:,.2f}",
        f"{percentile(one.waits_ms, 95) / SECOND_MS:,.2f}",
        f"{100 * mean(each.working for each in late) / sizes.agents:.0f} %",
        f"{(end.closed - begin.closed) / sizes.last_min:,.0f}",
    )


def _waiting(splits: Sequence[Split]) -> Iterator[tuple[str, ...]]:
    for at in zip(*(each.moments for each in splits), strict=True):
        minute = at[0].at_ms // MINUTE_MS
        if minute == 1 or minute % EVERY_MIN == 0:
            yield (f"{minute}", *(f"{each.waiting:,}" for each in at))


def _targets(splits: Sequence[Split]) -> Iterator[Target]:
    most = splits[-1]
    yield Target(
        f"{most.boards} boards: the busiest brain", f"below {100 * MOST_BUSY:.0f} %", f"{100 * most.busy:.0f} %",
        most.busy < MOST_BUSY,
    )  # fmt: skip


def main() -> None:
    """Simulate with sizes and costs of one's own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boards", description="Simulate agents on boards.")
    parser.add_argument("--agents", type=int, default=AGENTS, help="all agents together")
    parser.add_argument("--boards", type=int, nargs="+", default=BOARDS, help="the numbers of boards to try")
    parser.add_argument("--session", type=float, default=SESSION_MIN, metavar="MINUTES", help="the mean of a session")
    parser.add_argument("--until", type=int, default=UNTIL_MIN, metavar="MINUTES", help="the end, in virtual time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--costs", type=float, nargs=4, required=True, metavar=("COMMIT", "ENTRY", "TURN", "MESSAGE"), help="in ms"
    )
    given = parser.parse_args()
    last_min = min(LAST_MIN, given.until // 2)
    sizes = Sizes(given.agents, tuple(given.boards), given.session, given.until, last_min, given.seed)
    print(plain(report(Measured(Costs(*given.costs)), sizes)))


if __name__ == "__main__":
    main()
