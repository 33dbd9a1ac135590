"""Pages as HTML: the templates of this package, in which every value is escaped."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lifefold.interpreters.cli.wording import age, clock_time
from lifefold.interpreters.explain.accounts import Balance
from lifefold.interpreters.explain.task_words import OF_TASKS
from lifefold.interpreters.explain.why.phrases import count
from lifefold.interpreters.explain.words import of_lane
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.views import about
from lifefold.interpreters.views.picture import lit
from lifefold.interpreters.web.drawing import drawing, last_spans, states
from lifefold.interpreters.web.machine_pages import picture
from lifefold.interpreters.web.structs import TimelinePage

HERE: Final = Path(str(resources.files("lifefold.interpreters.web")))


def html(template: str, page: msgspec.Struct, values: Mapping[str, Any]) -> str:
    """Return a page as HTML; ``values`` has what is not in the page, such as the nonce."""
    return _ENVIRONMENT.get_template(template).render(page=page, **values)


def _ago(since_ms: int, now_ms: int) -> Markup:
    """Return the age of a moment, which the script of the page keeps up to date."""
    then = datetime.fromtimestamp(since_ms / 1_000, UTC)
    return Markup('<time datetime="{}" data-since="{}" title="{}">{}</time>').format(
        then.isoformat(), since_ms, _clock(since_ms), age(now_ms - since_ms)
    )


def _clock(at_ms: int) -> str:
    return clock_time(at_ms / 1_000)


def _path(*parts: object) -> str:
    """Return an address of parts, each quoted as a whole."""
    return "/" + "/".join(quote(str(each), safe="") for each in parts)


def _lit(name: str, state: str) -> Markup:
    """Return the picture of a machine with one state lit; an empty text without a picture.

    Pictures are files of this package. The state comes from a machine, and is compared with the keys of the boxes.
    """
    svg = picture(name)
    if not svg:
        return Markup("")
    body = lit(svg[svg.index("<svg") :], state)
    title = Markup('<svg role="img" aria-label="{}: {} is lit" ').format(name, state or "no state")
    return title + Markup(body.removeprefix("<svg"))  # noqa: S704 - a file of this package


def _drawn(page: TimelinePage) -> Markup:
    """Return the drawing of a timeline, whose lanes lead to their agents and tasks."""
    places = {
        f"{lane.kind} {lane.name}": _path("fleets", page.at.key, f"{lane.kind}s", lane.name) for lane in page.lanes
    }
    return drawing(page, places)


def _budgets_of(balances: Iterable[Balance]) -> list[tuple[str, str]]:
    """Return each budget once, as whose it is and its name: a budget has a balance for each limit."""
    return list(dict.fromkeys((each.whose, each.name) for each in balances))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _marked(line: str) -> str:
    """Return the class of a line of a diff."""
    if line.startswith(("+++", "---", "diff ", "index ")):
        return "head"
    return {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "")


def _printable(value: Any) -> Any:
    """Return a value without control characters and without marks that turn the direction of writing."""
    if type(value) is not str or value.isprintable():
        return value
    return plain(value.encode("utf-8", "replace"))


_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    finalize=_printable,
    auto_reload=False,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {"clock": _clock, "json": _json, "marked": _marked, "age": age}


def _is_machine(name: str) -> bool:
    return name in about()


_GLOBALS: dict[str, Any] = {
    "ago": _ago,
    "budgets_of": _budgets_of,
    "counted": count,
    "drawn": _drawn,
    "in_words": OF_TASKS.get,
    "is_machine": _is_machine,
    "last_spans": last_spans,
    "lit": _lit,
    "of_lane": of_lane,
    "path": _path,
    "states": states,
}
_ENVIRONMENT.globals.update(_GLOBALS)
