"""The campaigns of torture: ``tools/torture [CAMPAIGN ...] [--trials N] [--again] [--jobs N] [--results FOLDER]``.

Each campaign continues where its results end, until it has so many trials. The exit code is 1 if a trial found
something wrong.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from cluster_faults import ClusterCampaign
from disk import DiskCampaign
from fuzz import FuzzCampaign, GuidedCampaign
from kills import KillCampaign
from power import PowerCampaign
from results_page import PAGES, with_results
from reuse import ReuseCampaign
from soak import SoakCampaign
from trials import FOLDER, Campaign, Result, go_on, kept

CAMPAIGNS: Final[Mapping[str, tuple[Callable[[], Campaign], int]]] = {
    "power": (PowerCampaign, 1_000),
    "disk": (DiskCampaign, 10),
    "kills": (KillCampaign, 1_000),
    "signals": (ReuseCampaign, 20),
    "fuzz": (FuzzCampaign, 100_000),
    "guided": (GuidedCampaign, 20),
    "cluster": (ClusterCampaign, 120),
    "soak": (SoakCampaign, 640),
}
"""By name: the campaign, and its number of trials."""


def arguments() -> argparse.Namespace:
    """Return what was typed."""
    parser = argparse.ArgumentParser(prog="make torture ARGS=", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=f"of {', '.join(CAMPAIGNS)}; all without one")
    parser.add_argument("--trials", type=int, metavar="N", help="continue until there are so many trials")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="make the trials of soak in so many processes")
    parser.add_argument("--again", action="store_true", help="begin again, without the earlier results")
    parser.add_argument("--results", type=Path, default=FOLDER, metavar="FOLDER", help="where the results are kept")
    given = parser.parse_args()
    unknown = set(given.campaigns) - CAMPAIGNS.keys()
    if unknown:
        parser.error(f"no campaign {', '.join(sorted(unknown))}; there are {', '.join(CAMPAIGNS)}")
    return given


def show(result: Result) -> None:
    """Print the results of a campaign."""
    wrong = len(result.wrong)
    print(f"{result.name}: {result.trials:,} trials in {result.seconds:,.0f} s, {wrong} with something wrong")
    for heading, numbers in (("points", result.points), ("counted", result.counted)):
        print(f"  {heading}: {', '.join(f'{name} {number:,}' for name, number in numbers.items())}")
    for each in result.wrong:
        print(f"  wrong: {each}")


def main() -> int:
    """Run the campaigns; return the exit code."""
    given, found = arguments(), False
    for name in given.campaigns or CAMPAIGNS:
        make, trials = CAMPAIGNS[name]
        if given.again:
            (given.results / f"{name}.json").unlink(missing_ok=True)
        try:
            jobs = given.jobs if make is SoakCampaign else 1
            result = go_on(make(), given.trials or trials, given.results, jobs)
        except LookupError as missing:
            print(f"{name}: skipped, it {missing}")
            continue
        except KeyboardInterrupt:
            show(kept(name, given.results))
            return 130
        show(result)
        found = found or bool(result.wrong)
        if given.results == FOLDER:
            for page, names in PAGES.items():
                page.write_text(with_results(page.read_text(), map(kept, names)))
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
