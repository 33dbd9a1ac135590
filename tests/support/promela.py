"""SPIN as a witness: the tables of a search as Promela, and the findings of SPIN.

Every aggregate is a process, and its state is the place in its program: SPIN is fastest with this form. A step is one
transition of SPIN, whatever it sends. So SPIN stores as many states as the search, and takes as many steps. An
assertion fails in a state that the search has not reached, and at a message that it has not seen there.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from resource import struct_rusage
from typing import Final, NamedTuple

from lifefold.interpreters.search.component import Component, LocalStep
from lifefold.interpreters.search.product_system import ProductSystem

Situation = Mapping[int, int]
"""Some parts, and the state that each of them is in."""

ALL: Final = ("-DSAFETY", "-DNOREDUCE", "-DNOFAIR")
"""Safety alone, every state, no partial order reduction."""

NEAREST_FIRST: Final = (*ALL, "-DBFS")
IGNORE_ENDS: Final = "-E"
"""Whether what is stuck may be so is not asked of SPIN."""


def available() -> bool:
    """Tell whether SPIN and a C compiler are installed."""
    return all(shutil.which(each) for each in ("spin", "gcc"))


class Model(NamedTuple):
    """A program for SPIN. It has ``before`` more states and steps: there, what is under way at first is sent."""

    text: str
    before: int = 0


def model(
    product_system: ProductSystem,
    *,
    forbidden: Sequence[Situation] = (),
    prop: int | None = None,
    distinct: bool = False,
) -> Model:
    """Return the product of a house's parts, after a search that met everything.

    A step into one of the ``forbidden`` situations violates an assertion. So does a step that breaks the property
    ``prop``, a number, of a machine or an aggregate type. ``distinct`` leaves out the steps that change
    nothing, and all but one of those that lead the same way: the states stay the same.
    """
    return _Writer(product_system, (*forbidden, *_situations(product_system, prop)), prop, distinct=distinct).model()


def _situations(product_system: ProductSystem, prop: int | None) -> Iterator[Situation]:
    for (part, local), broken in product_system.judge.wrong.items():
        if prop in broken:
            yield {part: local}


_UNMET: Final = "true -> assert(false)"


class _Writer:
    def __init__(
        self, product_system: ProductSystem, forbidden: Sequence[Situation], prop: int | None, *, distinct: bool
    ) -> None:
        self._product = product_system
        self._forbidden = forbidden
        self._property = prop
        self._distinct = distinct
        self._initial = product_system.initial()
        assert not any(self._initial[: len(product_system.components)]), (
            "a search begins with the first state of each part"
        )
        self._limited = product_system.bounds.commands is not None
        self._at_first = {
            channel: product_system.queues[self._initial[len(product_system.components) + channel]]
            for channel in range(len(product_system.channels))
            if self._initial[len(product_system.components) + channel]
        }

    def model(self) -> Model:
        lines = [*self._declarations(), *self._opening()]
        for part in self._product.components:
            lines += self._process(part)
        return Model("\n".join([*lines, ""]), bool(self._at_first))

    def _declarations(self) -> Iterator[str]:
        capacity = max(map(len, self._product.queues)) + 1
        kind = "byte" if len(self._product.messages) <= 255 else "short"
        if capacity > 1:
            for channel, (sender, receiver) in enumerate(self._product.channels):
                names = f"{self._product.components[sender].name} to {self._product.components[receiver].name}"
                yield f"chan c{channel} = [{capacity}] of {{ {kind} }} /* {names} */"
        if self._forbidden:
            yield from (f"short p{part.number}" for part in self._product.components)
        if self._limited:
            yield f"short said = {self._initial[-1]}"

    def _opening(self) -> Iterator[str]:
        if self._at_first:
            sent = "; ".join(f"c{c}!{message}" for c, messages in self._at_first.items() for message in messages)
            yield f"bool begun\nactive proctype opening() {{\n  d_step {{ {sent}; begun = true }};\n  false\n}}"

    def _process(self, part: Component) -> Iterator[str]:
        provided = " provided (begun)" if self._at_first else ""
        yield f"active proctype a{part.number}(){provided} {{ /* {part.name} */"
        receptions = sorted(part._receptions)
        for local in range(len(part.states)):
            options = [_UNMET]
            if part._steps[local] is not None:
                known = [(channel, message) for at, channel, message in receptions if at == local]
                options = [*self._spontaneous(part, local), *self._takes(part, local, known)]
            yield f"S{local}: if"
            yield from (f"  :: {option}" for option in options or ["false"])
            yield "  fi;"
        yield "}"

    def _spontaneous(self, part: Component, local: int) -> Iterable[str]:
        steps = [self._option(part, local, step, self._may(step)) for step in part.steps(local)]
        idle = self._option(part, local, LocalStep(0, local, 0, said=False, sent=(), wrong=()), [])
        return [each for each in dict.fromkeys(steps) if each != idle] if self._distinct else steps

    def _may(self, step: LocalStep) -> list[str]:
        return [f"said < {self._product.bounds.commands}", "said++"] if step.said and self._limited else []

    def _takes(self, part: Component, local: int, known: Sequence[tuple[int, int]]) -> Iterator[str]:
        for channel, message in known:
            yield self._option(part, local, part.reception(local, channel, message), [f"c{channel}?{message}"])
        if len(self._product.queues) > 1:
            for channel, (_, receiver) in enumerate(self._product.channels):
                if receiver == part.number:
                    unknown = "".join(f" && !c{channel}?[{message}]" for at, message in known if at == channel)
                    yield f"d_step {{ nempty(c{channel}){unknown} -> assert(false) }}; goto S{local}"

    def _option(self, part: Component, local: int, step: LocalStep, before: list[str]) -> str:
        """Return a step; one that does nothing at all needs a condition, or SPIN takes it for a mistake."""
        sent = [f"c{channel}!{message}" for channel, message in step.sent]
        moved = [f"p{part.number} = {step.to}"] if self._forbidden and step.to != local else []
        done = [*before, *sent, *moved, *self._asserted(part, step)]
        if len(done) > 1 or (done and not before):
            return f"d_step {{ {'; '.join(done if before else ['true', *done])} }}; goto S{step.to}"
        return f"{done[0] if done else '_nr_pr' if step.to == local else 'true'} -> goto S{step.to}"

    def _asserted(self, part: Component, step: LocalStep) -> Iterator[str]:
        if self._property in step.wrong:
            yield "assert(false)"
        for situation in self._forbidden:
            if situation.get(part.number) == step.to:
                where = [f"p{other} == {local}" for other, local in situation.items()]
                yield f"assert(!({' && '.join(where)}))"


class Found(NamedTuple):
    """What SPIN says of a model, less what happens ``before``.

    ``depth`` is that of the search: of a nearest-first one, how far the farthest states are. ``broken_at`` is by the
    how-manieth step an assertion fails (SPIN itself gives the depth of the state that this step leaves).
    ``processor_s`` is the time of the search alone, not of translating and compiling; ``memory_mib`` is the memory
    that it says it had.
    """

    states: int
    steps: int
    depth: int
    broken_at: int | None
    processor_s: float
    memory_mib: float


class OutOfMemory(Exception):
    """SPIN had stored ``states`` when it had no memory left."""

    def __init__(self, states: int, processor_s: float) -> None:
        super().__init__(f"out of memory after {states:,} states")
        self.states = states
        self.processor_s = processor_s


class Verifier:
    """A model translated and compiled: it can be run again and again."""

    def __init__(self, of: Model, folder: Path, directives: Sequence[str] = NEAREST_FIRST, level: str = "-O1") -> None:
        """Compile it in ``folder``. Raises ``AssertionError`` with what SPIN or the compiler says against it."""
        self._before = of.before
        self._folder = folder
        (folder / "model.pml").write_text(of.text)
        for words in (("spin", "-a", "model.pml"), ("gcc", level, "-w", *directives, "-o", "pan", "pan.c")):
            ended = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)
            assert ended.returncode == 0, ended.stdout + ended.stderr

    def run(self, *options: str) -> Found:
        """Search. Raises ``OutOfMemory``; ``AssertionError`` if anything was left out or failed otherwise."""
        with (self._folder / "said").open("w") as said:
            process = subprocess.Popen(
                ("./pan", IGNORE_ENDS, *options), cwd=self._folder, stdout=said, stderr=subprocess.STDOUT
            )
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
        return self._found((self._folder / "said").read_text(), usage)

    def _found(self, said: str, usage: struct_rusage) -> Found:
        processor_s = usage.ru_utime + usage.ru_stime
        number = {
            what: next((int(float(found[1])) for found in re.finditer(pattern, said)), -1)
            for what, pattern in _FIGURES.items()
        }
        if re.search("reached -DMEMLIM bound|out of memory", said):
            raise OutOfMemory(max(number["states"], 0), processor_s)
        memory = re.search(r"([\d.]+)\s+(?:total actual memory usage|memory usage \(Mbyte\))", said)
        broken = re.search(r"assertion violated .*\(at depth (\d+)\)", said)
        assert number["errors"] == int(broken is not None), said
        assert broken or "Search not completed" not in said, said
        assert "max search depth too small" not in said, said
        return Found(
            states=number["states"] - self._before,
            steps=number["transitions"] - 1 - self._before,
            depth=number["depth"] - self._before,
            broken_at=None if broken is None else int(broken[1]) + 1 - self._before,
            processor_s=processor_s,
            memory_mib=float(memory[1]) if memory else 0.0,
        )


_FIGURES: Final = {
    "errors": r"errors: (\d+)",
    "states": r"([\d.e+]+) states, stored",
    "transitions": r"([\d.e+]+) transitions",
    "depth": r"depth reached (\d+)",
}
