"""The exhaustive search of several independent sessions, beside SPIN's search of the same states.

SPIN gets the product as a program that is generated from the tables (``tests/support/promela.py``). The program has the
form with which SPIN is fastest, and is compiled with ``-O3``, for safety only. SPIN's time excludes translation and
compilation; the search's time includes making the tables. Both are processor times of the whole process.

``python -m benchmarks.checking race`` gives both all the memory of this machine, and a product that is too large for
SPIN in it. That takes an hour or two, mostly for SPIN.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from benchmarks.report import Report, Table, Target, plain
from benchmarks.sampling import Costs, Turn, ratios, spread, take_turns
from lifefold.core.kernel import AggregateType, Created, Envelope, System
from lifefold.core.lifecycles import session
from lifefold.interpreters.search.bitset_search import search
from lifefold.interpreters.search.configuration import Bounds, Judge
from lifefold.interpreters.search.product_system import ProductSystem

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from promela import ALL, Model, OutOfMemory, Verifier, available, model

ROUNDS = 3
WANTED = 3.0
WANTED_ALONE = 200_000
MEMORY_MIB = 1_024

OURS = "search"


@dataclass(frozen=True)
class Product:
    """Independent sessions: their number, and the bounds that keep each of them finite."""

    sessions: int
    limits: session.Limits
    within: Mapping[str, Callable[[Any], bool]]
    postponed: int = 0

    def product_system(self, states: int = 100_000_000_000, memory_mib: int | None = None) -> ProductSystem:
        """Return the product system before a search, without tables."""
        machine = session.machine.starting(session.Session(limits=self.limits))
        system = System("sessions", AggregateType("session", machines=(machine,)))
        opening = [
            (f"session/{number}", Envelope("session", Created(machine.initial), 0)) for number in range(self.sessions)
        ]
        bounds = Bounds(within=self.within, postponed=self.postponed, states=states, memory_mib=memory_mib)
        return ProductSystem(system, tuple(opening), Judge(system), bounds)


def first_session(record: session.Session) -> bool:
    """Tell whether an agent has not completed a session yet."""
    return record.session_seq < 1


FIRST_ERROR = session.Limits(max_consecutive_errors=1, max_total_errors=1)
PRODUCTS = (
    Product(3, session.Limits(max_consecutive_errors=2, max_total_errors=3), {}),
    Product(4, FIRST_ERROR, {}),
    Product(5, FIRST_ERROR, {"session": first_session}),
)
TWO_ERRORS = session.Limits(max_consecutive_errors=2, max_total_errors=2)
LARGE = Product(5, TWO_ERRORS, {"session": first_session})
"""Too large for SPIN in ``MEMORY_MIB``."""
HUGE = Product(5, TWO_ERRORS, {})
"""Too large for SPIN in the memory of a usual machine: it has more than a billion states."""
ALONE = Product(1, session.Limits(), {}, postponed=2)


@dataclass(frozen=True)
class Setting:
    """Compiler options of SPIN beyond ``ALL``; ``distinct`` omits steps without a change, and duplicate steps."""

    name: str
    directives: tuple[str, ...]
    distinct: bool = False


UNCOMPRESSED = Setting("SPIN -DNOCOMP", ("-DNOCOMP",))
DISTINCT = Setting("SPIN -DNOCOMP, distinct steps", ("-DNOCOMP",), distinct=True)
BEST = (UNCOMPRESSED, DISTINCT)
"""The two fastest of all settings below; the second has fewer steps than the search."""

REGULAR = Setting("SPIN -DMA", ("-DMA=64",))
"""Needs very little memory for a product of equal components, and much time."""

OTHERS = (
    Setting("SPIN as it comes", ()),
    Setting("SPIN -DCOLLAPSE", ("-DCOLLAPSE",)),
    REGULAR,
    Setting("SPIN -DBFS", ("-DBFS", "-DNOCOMP")),
)
COMPACT = (UNCOMPRESSED, Setting("SPIN as it comes", ()), Setting("SPIN -DCOLLAPSE", ("-DCOLLAPSE",)))
"""The settings for short memory."""


@dataclass(frozen=True)
class Size:
    """The size of a product after a search."""

    states: int
    steps: int
    components: tuple[int, ...]

    @property
    def hash_bits(self) -> str:
        """SPIN's option for a hash table with four to eight places per state, with which it is fastest."""
        return f"-w{self.states.bit_length() + 2}"


def searched(product: Product) -> tuple[ProductSystem, Size]:
    """Search a product once; return it with its tables, and its size."""
    product_system = product.product_system()
    graph = search(product_system)
    assert not graph.truncated, graph.truncated
    return product_system, Size(graph.count, graph.steps, tuple(len(part.states) for part in product_system.components))


def ours(product: Product) -> Turn:
    """Return a turn of the search, in nanoseconds per state."""

    def turn() -> tuple[float, object]:
        product_system = product.product_system()
        begin = process_time()
        graph = search(product_system)
        return 1e9 * (process_time() - begin) / graph.count, graph.count

    return turn


def spin(verifier: Verifier, size: Size) -> Turn:
    """Return a turn of SPIN, in nanoseconds per state."""

    def turn() -> tuple[float, object]:
        found = verifier.run(size.hash_bits, "-m1000000")
        return 1e9 * found.processor_s / found.states, found.states

    return turn


def compiled(of: Model, setting: Setting, within: ExitStack, *more: str) -> Verifier:
    """Translate and compile a model, in a folder that exists until ``within`` is left."""
    folder = Path(within.enter_context(TemporaryDirectory()))
    return Verifier(of, folder, (*ALL, *setting.directives, *more), level="-O3")


@dataclass(frozen=True)
class Compared:
    """The measured rounds of a product."""

    product: Product
    size: Size
    costs: Costs

    @property
    def title(self) -> str:
        """The name of the product."""
        return f"{self.product.sessions} sessions of {self.size.components[0]} states"

    def factors(self) -> list[float]:
        """Return, round by round, the cost of SPIN's best setting over that of the search."""
        best = [min(each) for each in zip(*(self.costs[setting.name] for setting in BEST), strict=True)]
        return ratios(best, self.costs[OURS])

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row for every contender."""
        return [
            (
                f"{self.title}: {name}",
                f"{self.size.states:,}",
                f"{1e9 / median(costs):,.0f}",
                f"{1e9 / min(costs):,.0f}",
                f"{median(ratios(costs, self.costs[OURS])):,.2f}",
            )
            for name, costs in self.costs.items()
        ]

    def target(self) -> Target:
        """Return the target, and whether it is met."""
        factors = self.factors()
        what = f"{self.title}: SPIN's best setting costs"
        return Target(what, f"at least {WANTED:g} x {OURS}", spread(factors, "{:.2f} x"), median(factors) >= WANTED)


def compare(product: Product) -> Compared:
    """Measure the search and SPIN in turns; they must find equally many states."""
    product_system, size = searched(product)
    contenders: dict[str, Turn] = {OURS: ours(product)}
    with ExitStack() as stack:
        for setting in BEST:
            verifier = compiled(model(product_system, distinct=setting.distinct), setting, stack)
            contenders[setting.name] = spin(verifier, size)
        del product_system
        return Compared(product, size, take_turns(contenders, ROUNDS))


def settings(product: Product) -> Table:
    """Run every setting of SPIN once."""
    product_system, size = searched(product)
    rows: list[tuple[str, ...]] = []
    with ExitStack() as stack:
        for setting in (*BEST, *OTHERS):
            verifier = compiled(model(product_system, distinct=setting.distinct), setting, stack)
            found = verifier.run(size.hash_bits, *([] if "-DBFS" in setting.directives else ["-m1000000"]))
            assert found.states == size.states, f"{setting.name} has stored {found.states} of {size.states} states"
            rate = found.states / found.processor_s
            rows.append(
                (setting.name, f"{found.states:,}", f"{found.steps:,}", f"{rate:,.0f}", f"{found.memory_mib:,.0f}")
            )
    title = f"SPIN's settings on {product.sessions} sessions of {size.components[0]} states, once each"
    return Table(title, ("", "states", "steps", "states per s", "MiB"), tuple(rows))


def within(product: Product, memory_mib: int, of_spin: Sequence[Setting]) -> Table:
    """Measure how many states each contender finds with the same memory, in separate processes."""
    product_system = _tabulated(product)
    states = prod(len(part.states) for part in product_system.components)
    rows = [_ours_within(product, memory_mib)]
    with ExitStack() as stack:
        text = model(product_system, distinct=True)
        for setting in of_spin:
            verifier = compiled(text, setting, stack, f"-DMEMLIM={memory_mib}")
            rows.append(_spin_within(setting, verifier, min(states.bit_length() - 1, _places_bits(memory_mib))))
    title = (
        f"{product.sessions} sessions of {len(product_system.components[0].states)} states, {states:,} in all, "
        f"within {memory_mib:,} MiB"
    )
    return Table(title, ("", "ended", "states met", "seconds", "MiB"), tuple(rows))


def _places_bits(memory_mib: int) -> int:
    """Return the binary logarithm of the places in SPIN's hash table if it takes a sixteenth of the memory."""
    place_bytes = 8
    return (memory_mib * 2**20 // 16 // place_bytes).bit_length() - 1


def _spin_within(setting: Setting, verifier: Verifier, hash_bits: int) -> tuple[str, ...]:
    try:
        found = verifier.run(f"-w{hash_bits}", "-m1000000")
    except OutOfMemory as error:
        return setting.name, "out of memory", f"{error.states:,}", f"{error.processor_s:,.0f}", ""
    return setting.name, "complete", f"{found.states:,}", f"{found.processor_s:,.0f}", f"{found.memory_mib:,.0f}"


def _tabulated(product: Product) -> ProductSystem:
    """Return a product with tables but without a search: each component is explored separately."""
    product_system = product.product_system()
    product_system.initial()
    for part in product_system.components:
        local = 0
        while local < len(part.states):
            part.steps(local)
            local += 1
    return product_system


def _ours_within(product: Product, memory_mib: int) -> tuple[str, ...]:
    name = "large" if product is LARGE else "huge"
    words = (sys.executable, "-m", "benchmarks.checking", name, str(memory_mib))
    printed = subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603 - constant arguments
    ended: dict[str, Any] = json.loads(printed.stdout)
    how = ended["truncated"] or "complete"
    return OURS, how, f"{ended['states']:,}", f"{ended['seconds']:,.0f}", f"{ended['mib']:,}"


def alone_within(name: str, memory_mib: int) -> None:
    """Search a product within the memory, and print the result, for ``within``."""
    product_system = {"large": LARGE, "huge": HUGE}[name].product_system(memory_mib=memory_mib)
    begin = process_time()
    found = search(product_system)
    seconds, mib = process_time() - begin, getrusage(RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"states": found.count, "truncated": found.truncated, "seconds": seconds, "mib": mib}))


def race() -> None:
    """Run the contenders with nearly all free memory; ``-DMA``, which is slow, gets a smaller product."""
    available = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())
    assert available is not None
    memory_mib = int(available[1]) // 1024 * 15 // 16
    print(plain(Report("race", (within(HUGE, memory_mib, COMPACT), within(LARGE, memory_mib, (REGULAR,))))))


def alone() -> tuple[Table, Target]:
    """Search one session with the document's thresholds."""
    turn = ours(ALONE)
    ended = [turn() for _ in range(ROUNDS)]
    rates = [1e9 / cost for cost, _ in ended]
    met = median(rates) >= WANTED_ALONE
    wanted = f"at least {WANTED_ALONE:,} states per s"
    target = Target("one session with default thresholds", wanted, spread(rates, "{:,.0f}"), met)
    row = ("one session with default thresholds", f"{ended[0][1]:,}", f"{median(rates):,.0f}", f"{max(rates):,.0f}")
    return Table("A machine alone, tables included", ("", "states", "states per s", "most"), (row,)), target


def measure() -> Report:
    """Measure and report; without SPIN, only the search."""
    table, target = alone()
    if not available():
        return Report(
            "checking", (table,), (target,), ("SPIN or gcc is not installed: there is nothing to compare with.",)
        )
    compared = [compare(product) for product in PRODUCTS]
    columns = ("", "states", "states per s", "most", f"x {OURS}")
    rows = tuple(row for each in compared for row in each.rows())
    tables = (
        table,
        Table("Sessions side by side", columns, rows),
        settings(PRODUCTS[0]),
        within(LARGE, MEMORY_MIB, COMPACT),
    )
    note = (
        f"{ROUNDS} rounds; all found equally many states. SPIN is compiled with -O3 {' '.join(ALL)}. Hash compaction "
        "and bitstates are left out, because they do not visit every state. -DMA stores a product of any size in very "
        "little memory, and needs much time."
    )
    return Report("checking", tables, (target, *(each.target() for each in compared)), (note,))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["race"]:
            race()
        case [name, mib]:
            alone_within(name, int(mib))
        case _:
            print(plain(measure()))
