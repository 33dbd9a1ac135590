"""The application: pages as HTML or JSON, the stream, the download, the commands, and the login.

A page is made in a thread, of one moment of its log.
"""

import re
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import anyio
import msgspec
from anyio import to_thread
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from lifefold.interpreters.recorder.forks import written
from lifefold.interpreters.store import StoreError
from lifefold.interpreters.web.agent_page import UnknownName
from lifefold.interpreters.web.commands import Command
from lifefold.interpreters.web.desk import Given
from lifefold.interpreters.web.followed_log import StillReading, UnknownPosition
from lifefold.interpreters.web.guards import LOGIN, NEEDS_LOGIN, Guards
from lifefold.interpreters.web.log_page import download
from lifefold.interpreters.web.openapi import (
    COMMANDS,
    DOWNLOAD,
    DRAWING,
    EVENTS,
    FORK,
    KEY_CHARACTERS,
    KEY_HEADER,
    KEY_PATTERN,
    SQLITE,
    SVG,
    description,
)
from lifefold.interpreters.web.pages import JSON_PATHS, PAGES, BadParameter, Page, choice, view
from lifefold.interpreters.web.rendering import HERE, html
from lifefold.interpreters.web.reports import drawing_of
from lifefold.interpreters.web.shelf import Shelf
from lifefold.interpreters.web.stream import events, parse
from lifefold.interpreters.web.structs import Problem
from lifefold.interpreters.web.token import Token

ASSETS: Final = {"desk.css": "text/css", "desk.js": "text/javascript", "icon.svg": "image/svg+xml"}
"""The files that pages need, with their types: all that this desk sends of its disk under its name."""

PING_S: Final = 15
"""The interval of comments in a stream, by which a dead connection is noticed."""

AGAIN_S: Final = 1
"""After how many seconds a browser asks again for a page whose log is being read."""

MOST_LINKS: Final = 8
"""The most fleets that each page links to; ``/`` has all of them."""

_COMMAND: Final = msgspec.json.Decoder(Command)

_STATUSES: Final[dict[type[Exception], int]] = {
    BadParameter: 400,
    UnknownName: 404,
    UnknownPosition: 404,
    StillReading: 503,
    StoreError: 503,
}
"""The status of each error that a request can cause."""


def application(shelf: Shelf, token: Token, hosts: Collection[str]) -> ASGIApp:
    """Return the guarded application for the logs of a shelf."""
    of = _Application(shelf, token)
    pages = [Route(path, partial(of.page, page, is_json=True)) for path, page in JSON_PATHS.items()]
    pages += [Route(page.path, partial(of.page, page, is_json=False)) for page in PAGES]
    routes = [
        Route(DOWNLOAD, of.download),
        Route(FORK, of.fork),
        Route(DRAWING, of.drawing),
        *sorted(pages, key=lambda route: -len(route.path)),
        Route(COMMANDS, of.give, methods=["POST"]),
        Route(EVENTS, of.events),
        Route("/openapi.json", of.openapi),
        Route("/assets/{name}", of.asset),
        Route(LOGIN, of.login),
    ]
    errors: dict[Any, Callable[[Request, Exception], Any]] = dict.fromkeys(_STATUSES, of.failed)
    errors |= {HTTPException: of.failed, Exception: of.broken}
    inner = Starlette(routes=routes, exception_handlers=errors, lifespan=of.lifespan)
    return Guards(inner, token, hosts)


class _Application:
    """The answers to all requests."""

    def __init__(self, shelf: Shelf, token: Token) -> None:
        self._shelf = shelf
        self._token = token

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncGenerator[None]:
        """Follow the logs while the application runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._shelf.follow)
            yield
            tasks.cancel_scope.cancel()

    async def page(self, page: Page, request: Request, *, is_json: bool) -> Response:
        """Return a page."""
        made = await to_thread.run_sync(page.make, self._shelf, request)
        if is_json or _wants_json(request):
            return _json(made)
        return _html(await to_thread.run_sync(self._rendered, page.template, made, request))

    def _rendered(self, template: str, made: msgspec.Struct, request: Request) -> str:
        values = {
            "nonce": request.state.nonce,
            "now_ms": getattr(getattr(made, "at", None), "at_ms", 0) if request.query_params.get("at") else _now_ms(),
            "here": request.url.path,
            "query": request.query_params,
            "has_reports": bool(self._shelf.reports),
            "keys": {key: log.fleet for key, log in list(self._shelf.logs.items())[:MOST_LINKS]},
        }
        return html(template, made, values)

    async def give(self, request: Request) -> Response:
        """Give an operator's command."""
        key = request.headers.get(KEY_HEADER, "") or f"desk-{time.time_ns()}"
        if len(key) > KEY_CHARACTERS or re.match(KEY_PATTERN, key) is None:
            message = f"{KEY_HEADER}: accepted: 1 to {KEY_CHARACTERS} characters of A-Z, a-z, 0-9 and ._:-"
            raise BadParameter(message)
        desk = self._shelf.desk(request.path_params["key"])
        command = command_of(await request.body())
        given: Given = await to_thread.run_sync(desk.give, command, key)
        await to_thread.run_sync(self._shelf.log(request.path_params["key"]).take)  # the next page has its effect
        self._shelf.pulse.beat()
        return _json(given, 200 if given.is_accepted else 409)

    async def events(self, request: Request) -> Response:
        """Return the stream of one fleet, or of all."""
        key = request.query_params.get("fleet", "")
        logs = partial(self._shelf.read, key)
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        try:
            positions = parse(after, logs(), is_one=bool(key))
        except ValueError as error:
            message = f"after={after[:40]!r}: accepted: a position of the log, or the id of an event"
            raise BadParameter(message) from error
        return EventSourceResponse(events(logs, positions, self._shelf.pulse, is_one=bool(key)), ping=PING_S)

    async def download(self, request: Request) -> Response:
        """Return all chosen transitions, one a line."""
        found = (await to_thread.run_sync(view, self._shelf, request)).whole()
        name = f'attachment; filename="{re.sub(r"[^A-Za-z0-9._-]", "_", found.log.key)}.ndjson"'
        headers = {"content-disposition": name}
        return StreamingResponse(download(found, choice(request)), media_type="application/x-ndjson", headers=headers)

    async def fork(self, request: Request) -> Response:
        """Return a log of its own with the entries up to a position."""
        found = await to_thread.run_sync(view, self._shelf, request)
        path = await to_thread.run_sync(written, found.log.path, found.moment.seq, found.log.fleet)
        removed = BackgroundTask(shutil.rmtree, path.parent, ignore_errors=True)
        return FileResponse(path, media_type=SQLITE, filename=path.name, background=removed)

    async def drawing(self, request: Request) -> Response:
        """Return the picture of a machine that a report has."""
        given = request.query_params
        names = (request.path_params["name"], given.get("machine", ""), given.get("state", ""))
        return Response(await to_thread.run_sync(drawing_of, self._shelf.reports, *names), media_type=SVG)

    async def openapi(self, _request: Request) -> Response:
        """Return the description for programs."""
        return Response(msgspec.json.encode(description()), media_type="application/json")

    async def asset(self, request: Request) -> Response:
        """Return a file that pages need."""
        name = request.path_params["name"]
        if name not in ASSETS:
            raise HTTPException(404)
        return Response(await anyio.Path(HERE / "assets" / name).read_bytes(), media_type=ASSETS[name])

    async def login(self, request: Request) -> Response:
        """Exchange the token for the cookie."""
        if not self._token.is_secret(request.query_params.get("token", "")):
            raise HTTPException(401, NEEDS_LOGIN)
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.set_cookie(self._token.cookie, self._token.session, httponly=True, samesite="strict", path="/")
        return answer

    async def failed(self, request: Request, error: Exception) -> Response:
        """Return why a request is not answered."""
        if isinstance(error, HTTPException):
            status, why = error.status_code, error.detail
        else:
            status, why = next(status for kind, status in _STATUSES.items() if isinstance(error, kind)), str(error)
        answer = self._problem(request, why, status)
        if isinstance(error, StillReading):
            answer.headers["refresh"] = answer.headers["retry-after"] = str(AGAIN_S)
        return answer

    async def broken(self, request: Request, error: Exception) -> Response:
        """Return that a page is broken by a mistake of the desk, whose server prints the error."""
        why = f"a mistake of lifefold has broken this page ({type(error).__name__}); the terminal of the desk shows it"
        return self._problem(request, why, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _problem(self, request: Request, why: str, status: int) -> Response:
        problem = Problem(why)
        if request.url.path.endswith(".json") or request.method == "POST" or _wants_json(request):
            return _json(problem, status)
        return _html(self._rendered("problem.html", problem, request), status)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def command_of(body: bytes) -> Command:
    """Return the command in the body of a request. Raises ``BadParameter``."""
    try:
        command: Command = _COMMAND.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadParameter(str(error)) from error
    return command


def _wants_json(request: Request) -> bool:
    """Tell whether a program asks: it accepts JSON, and HTML at most after it."""
    kinds = [each.partition(";")[0].strip() for each in request.headers.get("accept", "").split(",")]
    return "application/json" in kinds and "text/html" not in kinds[: kinds.index("application/json")]


def _json(value: msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _html(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="text/html")
