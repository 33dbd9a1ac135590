"""The page of all fleets: those in which something waits first, then those that run, and last those that are over."""

import msgspec

from lifefold.interpreters.web.fleet_pages import fleet_page
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.shelf import Shelf
from lifefold.interpreters.web.structs import At, FleetPage


class Unread(msgspec.Struct, frozen=True):
    """A log of this machine that cannot be opened, and why."""

    log: str
    why: str


class Overview(msgspec.Struct, frozen=True):
    """All fleets that this desk shows.

    A desk of the whole machine has the fleets that are ``over`` in short. ``reading`` are the keys of logs that are
    being read for the first time. ``hidden`` counts the fleets of the machine that are not shown.
    """

    fleets: tuple[FleetPage, ...]
    over: tuple[At, ...] = ()
    reading: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
    hidden: int = 0
    is_of_machine: bool = False


def overview(shelf: Shelf) -> Overview:
    """Return the page of all fleets."""
    views = [View(log) for log in shelf.read()]
    is_of_machine = shelf.find is not None
    over = [view for view in views if is_of_machine and view.is_over and not view.runs]
    pages = [fleet_page(view) for view in views if view not in over]
    if is_of_machine:
        pages.sort(key=lambda page: (not page.waits and page.change is None, page.at.runner != "at work"))
    return Overview(
        tuple(pages),
        tuple(view.at() for view in over),
        tuple(key for key, log in list(shelf.logs.items()) if not log.is_read),
        tuple(Unread(log, why) for log, why in shelf.unread.items()),
        shelf.hidden,
        is_of_machine,
    )
