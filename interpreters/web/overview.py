"""The page of all fleets: first fleets with waiting decisions, then running ones, and last ended ones."""

import traceback
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from lifefold.interpreters.web.fleet_pages import fleet_page
from lifefold.interpreters.web.followed_log import FollowedLog
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.report_structs import ReportLine
from lifefold.interpreters.web.reports import reports_page
from lifefold.interpreters.web.shelf import Shelf
from lifefold.interpreters.web.structs import At, FleetPage

BROKEN: Final = "a mistake of lifefold has broken its page ({}); the terminal of the desk shows it"
"""What is said of a fleet whose page cannot be made."""


class Unread(msgspec.Struct, frozen=True):
    """A log that cannot be opened, or a fleet whose page is broken, and why."""

    log: str
    why: str


class Overview(msgspec.Struct, frozen=True):
    """All fleets that this desk shows.

    A desk of the whole machine has the fleets that are ``over`` in short. ``reading`` are the keys of logs that are
    being read for the first time. ``hidden`` counts the fleets of the machine that are not shown. ``reports`` are those
    that this desk was given, and ``problems`` says why others cannot be read.
    """

    fleets: tuple[FleetPage, ...]
    over: tuple[At, ...] = ()
    reading: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
    hidden: int = 0
    is_of_machine: bool = False
    reports: tuple[ReportLine, ...] = ()
    problems: tuple[str, ...] = ()


def overview(shelf: Shelf) -> Overview:
    """Return the page of all fleets."""
    is_of_machine, given = shelf.find is not None, reports_page(shelf.reports)
    parts = list(_parts(shelf.read(), in_short=is_of_machine))
    pages = [each for each in parts if isinstance(each, FleetPage)]
    if is_of_machine:
        pages.sort(key=lambda page: (not page.waits and page.change is None, page.at.runner != "at work"))
    broken = (each for each in parts if isinstance(each, Unread))
    return Overview(
        tuple(pages),
        tuple(each for each in parts if isinstance(each, At)),
        tuple(key for key, log in list(shelf.logs.items()) if not log.is_read),
        (*broken, *(Unread(log, why) for log, why in shelf.unread.items())),
        shelf.hidden,
        is_of_machine,
        given.reports,
        given.problems,
    )


def _parts(logs: Sequence[FollowedLog], *, in_short: bool) -> Iterator[FleetPage | At | Unread]:
    """Yield the part of each fleet, with ``in_short`` only its moment if it is over.

    A fleet whose part cannot be made is named with its error. The others are shown.
    """
    for log in logs:
        try:
            view = View(log)
            yield view.at() if in_short and view.is_over and not view.runs else fleet_page(view)
        except Exception as error:  # noqa: BLE001 - one broken fleet must not hide what waits in the others
            traceback.print_exc()
            yield Unread(str(log.path), f"{log.fleet}: {BROKEN.format(type(error).__name__)} ({log.path})")
