"""A model service on loopback that answers as a recording needs it: with text, a tool call, or an error.

It speaks the dialects of ``dialects``. An error has the status and the body of the real service, so an agent program
takes the path that it would take there.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import MappingProxyType
from typing import Final, NamedTuple, Self

import dialects
from dialects import COSTS, Answer, Body, Served, Tool


class Mode(StrEnum):
    """How the service answers."""

    TEXT = "text"
    WRITE = "write"
    """The first answer asks for a file to be written, the next one is text."""
    SHELL = "shell"
    """The first answer asks for a failing command, the next one is text."""
    HANG = "hang"
    """The first answer asks for a file to be written; the next one never comes."""
    LIMIT = "limit"
    RATE = "rate"
    OVERLOADED = "overloaded"
    TOO_LONG = "too-long"
    LOGIN = "login"
    CREDIT = "credit"


class Failure(NamedTuple):
    """An error of a service: HTTP status, body, and headers besides."""

    status: int
    body: Body
    headers: Mapping[str, str] = MappingProxyType({})


RESETS_AT_S: Final = 1_795_600_800
"""The time at which a limit of the recordings ends, in seconds of the epoch."""

TRIES: Final = 2
"""The errors after which a program that tries again is stuck: a recording needs no more of them."""

SHELL: Final = "echo 'AssertionError: 401 Unauthorized'; exit 1"
FILE: Final = "made.txt"
EDIT: Final = f"{FILE}\n```\n<<<<<<< SEARCH\n=======\nhello\n>>>>>>> REPLACE\n```"
"""A change as text, for a program without tools."""


def _anthropic(kind: str, message: str) -> Body:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _openai(kind: str, message: str, **more: object) -> Body:
    return {"error": {"type": kind, "code": kind, "message": message, **more}}


def _gemini(code: int, status: str, message: str) -> Body:
    return {"error": {"code": code, "status": status, "message": message}}


_UNIFIED: Final = {
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-representative-claim": "five_hour",
    "anthropic-ratelimit-unified-overage-status": "rejected",
    "x-should-retry": "false",
}
_LATER: Final = "This request would exceed your account's rate limit. Please try again later."
_UNPAID: Final = "You exceeded your current quota, please check your plan and billing details."
_TOO_MANY: Final = "The input token count (2100000) exceeds the maximum number of tokens allowed (1048576)."
_NO_RETRY: Final = {"x-should-retry": "false"}
_CONTEXT: Final = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 210000 tokens."
)

FAILURES: Final[dict[str, dict[Mode, Failure]]] = {
    "anthropic": {
        Mode.LIMIT: Failure(
            429,
            _anthropic("rate_limit_error", "This request would exceed your account's rate limit."),
            _UNIFIED,
        ),
        Mode.RATE: Failure(
            429,
            _anthropic("rate_limit_error", _LATER),
            _NO_RETRY,
        ),
        Mode.OVERLOADED: Failure(529, _anthropic("overloaded_error", "Overloaded"), _NO_RETRY),
        Mode.TOO_LONG: Failure(
            400, _anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        ),
        Mode.LOGIN: Failure(401, _anthropic("authentication_error", "invalid x-api-key")),
        Mode.CREDIT: Failure(
            400,
            _anthropic(
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API. "
                "Please go to Plans & Billing to upgrade or purchase credits.",
            ),
        ),
    },
    "openai": {
        Mode.LIMIT: Failure(
            429,
            _openai("usage_limit_reached", "The usage limit has been reached", plan_type="pro"),
        ),
        Mode.RATE: Failure(429, _openai("rate_limit_exceeded", "Rate limit reached for mock in organization org-1.")),
        Mode.OVERLOADED: Failure(503, _openai("server_is_overloaded", "The server is overloaded. Try again later.")),
        Mode.TOO_LONG: Failure(400, _openai("context_length_exceeded", _CONTEXT)),
        Mode.LOGIN: Failure(401, _openai("invalid_api_key", "Incorrect API key provided: none.")),
        Mode.CREDIT: Failure(
            429,
            _openai("insufficient_quota", _UNPAID),
        ),
    },
    "gemini": {
        Mode.LIMIT: Failure(
            429,
            _gemini(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota: requests per day. Limit: 100."),
        ),
        Mode.RATE: Failure(429, _gemini(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")),
        Mode.OVERLOADED: Failure(503, _gemini(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")),
        Mode.TOO_LONG: Failure(
            400,
            _gemini(400, "INVALID_ARGUMENT", _TOO_MANY),
        ),
        Mode.LOGIN: Failure(400, _gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")),
        Mode.CREDIT: Failure(403, _gemini(403, "PERMISSION_DENIED", "Billing is not enabled for this project.")),
    },
}


def failure(dialect: str, mode: Mode, resets_at_s: int) -> Failure | None:
    """Return the error of a mode; a limit ends at a time that two of the services tell."""
    found = FAILURES[dialect].get(mode)
    if found is None or mode is not Mode.LIMIT:
        return found
    stamp = {"anthropic-ratelimit-unified-reset": str(resets_at_s)} if dialect == "anthropic" else {}
    told = {"resets_at": resets_at_s} if dialect == "openai" else {}
    return Failure(found.status, {**found.body, "error": {**found.body["error"], **told}}, {**found.headers, **stamp})


def writing(path: str, content: str) -> tuple[Tool, ...]:
    """Return the tools of agent programs that write a file."""
    made: Body = {"content": content}
    return (
        Tool("Write", {"file_path": path, **made}),
        Tool("write", {"filePath": path, **made}),
        Tool("write_file", {"file_path": path, **made}),
        Tool("exec_command", {"cmd": f"printf %s {shlex.quote(content)} > {shlex.quote(path)}"}),
    )


def running(command: str) -> tuple[Tool, ...]:
    """Return the tools of agent programs that run a command."""
    run: Body = {"command": command, "description": "run a command"}
    return Tool("Bash", run), Tool("bash", run), Tool("run_shell_command", run), Tool("exec_command", {"cmd": command})


def offered(tools: tuple[Tool, ...], body: str) -> Tool | None:
    """Return the first tool that the program of a request offers."""
    return next((tool for tool in tools if f'"name":"{tool.name}"' in body), None)


WRITERS: Final = writing(FILE, "hello\n")
SHELLS: Final = running(SHELL)

_TOOL: Final = re.compile(r'\{"name":"(\w+)"')

_ANSWERED: Final = ('"tool_result"', '"role":"tool"', '"function_call_output"', '"functionResponse"')


def tools_answered(body: str) -> int:
    """Return how many results of tools a conversation has, up to a request."""
    return sum(body.count(each) for each in _ANSWERED)


def answer(body: str, mode: Mode, number: int) -> Answer | None:
    """Return the answer to a request; None for no answer at all. A request with no tools at all asks for a title."""
    if mode not in {Mode.WRITE, Mode.SHELL, Mode.HANG} or '"tools":[]' in body:
        return Answer(number)
    if tools_answered(body):
        return None if mode is Mode.HANG else Answer(number)
    tool = offered(SHELLS if mode is Mode.SHELL else WRITERS, body)
    if tool is None and '"functionDeclarations"' in body:
        tool = WRITERS[2]  # a model may use a tool that it was not offered
    if tool is not None:
        return Answer(number, tool)
    return None if mode is Mode.HANG else Answer(number, text=EDIT)


class Service(ThreadingHTTPServer):
    """The service on a free port of loopback, in one mode.

    ``requests`` has the paths of its requests, and ``served`` what its answers have cost. ``tools`` has the names of
    the tools that the model may call, as far as the first field of each is its name. ``stuck`` is set when a request
    gets no answer, and when a request comes after that many errors (``tries``).
    """

    daemon_threads = True

    def __init__(self, mode: Mode, *, resets_at_s: int | None = None, tries: int = TRIES) -> None:
        """Listen; the service answers as soon as it is entered. ``resets_at_s`` is the end of a limit."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode: Final = mode
        self.resets_at_s: Final = RESETS_AT_S if resets_at_s is None else resets_at_s
        self.requests: Final[list[str]] = []
        self.served = Served()
        self.tools: Final[set[str]] = set()
        self.stuck: Final = Event()
        self.is_over: Final = Event()
        self.tries: Final = tries
        self.errors = 0

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def reply(self, dialect: str, body: str) -> Answer | Failure | None:
        """Return the answer or the error of a request; None for no answer at all."""
        error = failure(dialect, self.mode, self.resets_at_s)
        if error is None:
            return answer(body, self.mode, len(self.requests))
        if self.errors >= self.tries:
            self.stuck.set()
        self.errors += 1
        return error

    def charge(self, cost: Served, body: str) -> None:
        """Note what an answer has cost, and the tools of its request; ``body`` is that request."""
        self.served = self.served.plus(cost)
        self.tools.update(_TOOL.findall(body))

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_args: object) -> None:
        self.is_over.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    @property
    def service(self) -> Service:
        """The service that got the request."""
        assert isinstance(self.server, Service)
        return self.server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Answer a request for headers."""
        self._send(200, {})

    def do_GET(self) -> None:
        """Answer a request for lists with an empty one."""
        self._send(200, {"data": [], "object": "list"})

    def do_POST(self) -> None:
        """Answer a request to the model."""
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode(errors="replace")
        body = body.replace('": "', '":"').replace('": true', '":true')
        path = self.path.partition("?")[0]
        self.service.requests.append(path)
        spoken = next((each for end, each in _SPOKEN.items() if path.endswith(end)), None)
        if "count" in path:
            self._send(200, {"input_tokens": 1, "totalTokens": 1})
        elif spoken is None:
            self._send(200, {})
        else:
            self._answer(spoken, body)

    def _answer(self, spoken: "_Dialect", body: str) -> None:
        found = self.service.reply(spoken.name, body)
        if found is None:
            self.service.stuck.set()
            self.service.is_over.wait()
            return
        if isinstance(found, Failure):
            self._send(found.status, found.body, found.headers)
            return
        self.service.charge(spoken.cost, body)
        if spoken.streamed is None or (spoken.whole is not None and '"stream":true' not in body):
            assert spoken.whole is not None
            self._send(200, spoken.whole(found))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for line in spoken.streamed(found):
            self.wfile.write(line.encode())
            self.wfile.flush()

    def _send(self, status: int, body: Body, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class _Dialect(NamedTuple):
    """How the answers of an address are written: streamed, whole, or as the request has it; and what one costs."""

    name: str
    cost: Served
    streamed: Callable[[Answer], Iterator[str]] | None = None
    whole: Callable[[Answer], Body] | None = None


_SPOKEN: Final = {
    "/messages": _Dialect("anthropic", COSTS["messages"], dialects.messages),
    "/responses": _Dialect("openai", COSTS["responses"], dialects.responses),
    "/chat/completions": _Dialect("openai", COSTS["completions"], dialects.chat, dialects.whole_chat),
    ":streamGenerateContent": _Dialect("gemini", COSTS["contents"], dialects.contents),
    ":generateContent": _Dialect("gemini", COSTS["contents"], whole=dialects.content),
}
"""The dialects by the ends of their addresses."""
