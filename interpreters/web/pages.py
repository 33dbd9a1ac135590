"""Every address of a page, once: what is made of a request, its type, its template, and its parameters."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from starlette.requests import Request

from lifefold.interpreters.web import machine_structs, report_structs, structs
from lifefold.interpreters.web.agent_page import agent_page
from lifefold.interpreters.web.fleet_pages import board_page, fleet_page
from lifefold.interpreters.web.journal import Choice
from lifefold.interpreters.web.log_page import log_page
from lifefold.interpreters.web.machine_pages import machine_page, machines_page
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.overview import Overview, overview
from lifefold.interpreters.web.reports import report_page, reports_page, trace_page
from lifefold.interpreters.web.shelf import Shelf
from lifefold.interpreters.web.task_page import diff_page, task_page
from lifefold.interpreters.web.timeline import timeline_page

MOST_NUMBER: Final = 2**53
"""The largest number in an address: what a browser can write exactly."""


class BadParameter(Exception):
    """A parameter of an address that is not accepted."""


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of an address: a number from 0 on, or a text."""

    name: str
    about: str
    is_number: bool = False


AT: Final = Parameter("at", "the position of the log that is shown; without it the newest", is_number=True)


class Page(msgspec.Struct, frozen=True):
    """An address, with ``{key}`` of a fleet and ``{name}`` of a part of it; ``make`` returns its struct."""

    path: str
    kind: type[msgspec.Struct]
    template: str
    make: Callable[[Shelf, Request], msgspec.Struct]
    parameters: tuple[Parameter, ...] = ()


def number(request: Request, name: str) -> int | None:
    """Return a number of an address; None without it. Raises ``BadParameter``."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or int(text[:17]) > MOST_NUMBER or len(text) > len(str(MOST_NUMBER)):
        message = f"{name}={text[:40]!r}: accepted: a whole number from 0 on"
        raise BadParameter(message)
    return int(text)


def view(shelf: Shelf, request: Request) -> View:
    """Return the moment of the fleet that an address names."""
    return View(shelf.log(request.path_params["key"]), number(request, "at"))


def choice(request: Request) -> Choice:
    """Return which transitions an address chooses."""
    given = request.query_params
    task, agent, machine = (given.get(each, "") for each in ("task", "agent", "machine"))
    return Choice(task, agent, machine, given.get("text", "").lower())


def _overview(shelf: Shelf, _request: Request) -> Overview:
    return overview(shelf)


def _fleet(shelf: Shelf, request: Request) -> structs.FleetPage:
    return fleet_page(view(shelf, request))


def _board(shelf: Shelf, request: Request) -> structs.BoardPage:
    return board_page(view(shelf, request))


def _agent(shelf: Shelf, request: Request) -> structs.AgentPage:
    return agent_page(view(shelf, request).told(), request.path_params["name"], number(request, "session") or 0)


def _task(shelf: Shelf, request: Request) -> structs.TaskPage:
    return task_page(view(shelf, request).told(), request.path_params["name"])


def _diff(shelf: Shelf, request: Request) -> structs.DiffPage:
    attempt, since = number(request, "attempt") or 0, number(request, "since") or 0
    shown = view(shelf, request)
    return diff_page(shown.whole() if attempt else shown.told(), request.path_params["name"], attempt, since)


def _log(shelf: Shelf, request: Request) -> structs.LogPage:
    is_all = bool(number(request, "all"))
    return log_page(view(shelf, request).told(), choice(request), number(request, "before") or 0, is_all=is_all)


def _timeline(shelf: Shelf, request: Request) -> structs.TimelinePage:
    return timeline_page(view(shelf, request).told(), number(request, "from") or 0, number(request, "to") or 0)


def _machines(_shelf: Shelf, _request: Request) -> machine_structs.MachinesPage:
    return machines_page()


def _machine(shelf: Shelf, request: Request) -> machine_structs.MachinePage:
    name = request.path_params["name"]
    return machine_page(name, shelf.reports.of(name))


def _reports(shelf: Shelf, _request: Request) -> report_structs.ReportsPage:
    return reports_page(shelf.reports)


def _report(shelf: Shelf, request: Request) -> report_structs.ReportPage:
    return report_page(shelf.reports, request.path_params["name"])


def _trace(shelf: Shelf, request: Request) -> report_structs.TracePage:
    finding, step = number(request, "finding"), number(request, "step")
    return trace_page(shelf.reports, request.path_params["name"], 1 if finding is None else finding, step or 0)


CHOICE: Final = (
    Parameter("task", "only lines that concern this task"),
    Parameter("agent", "only lines that concern this agent"),
    Parameter("machine", "only transitions of this machine, in place of the story"),
    Parameter("text", "only lines with this text in their name, cause or actor"),
)
_ALL: Final = Parameter("all", "1: every transition, in place of the story", is_number=True)
_BEFORE: Final = Parameter("before", "only lines of entries before this position", is_number=True)
_SESSION: Final = Parameter("session", "the session whose output is shown; without it the last", is_number=True)
_ATTEMPTS: Final = (
    Parameter("attempt", "the attempt whose work is shown; without it the present work", is_number=True),
    Parameter("since", "the attempt that it is compared with; without it its base", is_number=True),
)
_STEP: Final = (
    Parameter("finding", "the number of a finding with a trace; without it the first", is_number=True),
    Parameter("step", "the step after which it is shown; without it the time before the first", is_number=True),
)
_RANGE: Final = (
    Parameter("from", "the begin, in Unix milliseconds", is_number=True),
    Parameter("to", "the end, in Unix milliseconds", is_number=True),
)

PAGES: Final = (
    Page("/", Overview, "overview.html", _overview),
    Page("/fleets/{key}", structs.FleetPage, "fleet.html", _fleet, (AT,)),
    Page("/fleets/{key}/board", structs.BoardPage, "board.html", _board, (AT,)),
    Page("/fleets/{key}/agents/{name}", structs.AgentPage, "agent.html", _agent, (AT, _SESSION)),
    Page("/fleets/{key}/tasks/{name}", structs.TaskPage, "task.html", _task, (AT,)),
    Page("/fleets/{key}/tasks/{name}/diff", structs.DiffPage, "diff.html", _diff, (AT, *_ATTEMPTS)),
    Page("/fleets/{key}/timeline", structs.TimelinePage, "timeline.html", _timeline, (AT, *_RANGE)),
    Page("/fleets/{key}/log", structs.LogPage, "log.html", _log, (AT, _ALL, *CHOICE, _BEFORE)),
    Page("/machines", machine_structs.MachinesPage, "machines.html", _machines),
    Page("/machines/{name}", machine_structs.MachinePage, "machine.html", _machine),
    Page("/reports", report_structs.ReportsPage, "reports.html", _reports),
    Page("/reports/{name}", report_structs.ReportPage, "report.html", _report),
    Page("/reports/{name}/trace", report_structs.TracePage, "trace.html", _trace, _STEP),
)
"""All pages. Each is JSON as well: at its address with ``.json``, or by ``Accept``; ``/`` is ``/index.json``."""

JSON_PATHS: Final[Mapping[str, Page]] = MappingProxyType(
    {("/index" if page.path == "/" else page.path) + ".json": page for page in PAGES}
)
"""The addresses at which pages are JSON."""
