"""Campaigns of trials against real processes and real files: their results, which a later run continues.

A campaign numbers its trials. A trial's number decides on everything that is random in it. The results are in one file
for each campaign: the number of trials, the trials at each point, what was counted, and what was found wrong.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import ClassVar, Final, NamedTuple, Protocol

import msgspec

FOLDER: Final = Path(__file__).parents[2] / "tests" / "torture" / "results"
"""The results of the recorded campaigns."""

SAVED_S: Final = 5.0
"""The time after which the results are written again."""


MEASURED: Final = 10
"""The resident size is kept after every so many trials."""


class Verdict(NamedTuple):
    """The result of a trial: where it struck, what is wrong after it, and what it has counted.

    ``resident_mib`` is the memory of the process after it, for a campaign of many trials in one process.
    """

    point: str
    wrong: tuple[str, ...] = ()
    counted: Mapping[str, int] = {}
    resident_mib: int = 0


class Campaign(Protocol):
    """A numbered sequence of trials."""

    name: ClassVar[str]
    """The name, also of its file of results."""

    def attempt(self, number: int, /) -> Verdict:
        """Make the trial with this number, from 0 on."""
        ...

    def close(self) -> None:
        """Give up what the trials share."""
        ...


class Result(msgspec.Struct):
    """The results of all trials so far; ``seconds`` is the time that they took."""

    name: str
    trials: int = 0
    seconds: float = 0.0
    points: dict[str, int] = {}
    counted: dict[str, int] = {}
    wrong: list[str] = []
    resident_mib: dict[int, int] = {}
    """The memory of the process by the number of trials so far, if the campaign tells it."""

    def take(self, verdict: Verdict, seconds: float) -> None:
        """Add the verdict of the next trial."""
        self.wrong += [f"trial {self.trials}, {verdict.point}: {each}" for each in verdict.wrong]
        self.points = dict(sorted((Counter(self.points) + Counter([verdict.point])).items()))
        self.counted = dict(sorted((Counter(self.counted) + Counter(verdict.counted)).items()))
        self.trials += 1
        if verdict.resident_mib and self.trials % MEASURED == 0:
            self.resident_mib = {**self.resident_mib, self.trials: verdict.resident_mib}
        self.seconds = round(self.seconds + seconds, 1)


def kept(name: str, folder: Path = FOLDER) -> Result:
    """Return the results of a campaign so far."""
    file = folder / f"{name}.json"
    return msgspec.json.decode(file.read_bytes(), type=Result) if file.exists() else Result(name)


def keep(result: Result, folder: Path = FOLDER) -> None:
    """Write the results, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{result.name}.json.new"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    draft.replace(folder / f"{result.name}.json")


def go_on(campaign: Campaign, until: int, folder: Path = FOLDER, jobs: int = 1) -> Result:
    """Make the trials from the last one on, until there are so many; keep the results meanwhile and at the end.

    With several ``jobs`` so many processes make them, each with a campaign of this type.
    """
    result, saved = kept(campaign.name, folder), monotonic()
    began = saved
    try:
        for verdict in _verdicts(campaign, range(result.trials, until), jobs):
            result.take(verdict, monotonic() - began)
            began = monotonic()
            if began - saved > SAVED_S:
                keep(result, folder)
                saved = began
    finally:
        campaign.close()
        keep(result, folder)
    return result


def _verdicts(campaign: Campaign, numbers: range, jobs: int) -> Iterator[Verdict]:
    """Yield the verdicts of these trials, in order."""
    if jobs == 1:
        yield from map(campaign.attempt, numbers)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (type(campaign),)) as pool:
        try:
            yield from pool.map(_attempt, numbers)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_campaigns: Final[list[Campaign]] = []
"""The campaign of this process, if it is one of several."""


def _begin(make: Callable[[], Campaign]) -> None:
    _campaigns.append(make())


def _attempt(number: int) -> Verdict:
    return _campaigns[-1].attempt(number)
