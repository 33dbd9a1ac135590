"""A model service on loopback that answers as a recording needs it: with text, a tool call, or an error.

It speaks four dialects: Anthropic's messages, OpenAI's responses and chat completions, and Gemini's contents. An error
has the status and the body of the real service, so an agent program takes the path that it would take there.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

Body = dict[str, Any]


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
"""The time at which a limit of the service ends, in seconds of the epoch."""

SHELL: Final = "echo 'AssertionError: 401 Unauthorized'; exit 1"
FILE: Final = "made.txt"
DONE: Final = "done"
EDIT: Final = f"{FILE}\n```\n<<<<<<< SEARCH\n=======\nhello\n>>>>>>> REPLACE\n```"
"""A change as text, for a program without tools."""
HANG_S: Final = 600


def _anthropic(kind: str, message: str) -> Body:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _openai(kind: str, message: str, **more: object) -> Body:
    return {"error": {"type": kind, "code": kind, "message": message, **more}}


def _gemini(code: int, status: str, message: str) -> Body:
    return {"error": {"code": code, "status": status, "message": message}}


_UNIFIED: Final = {
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-reset": str(RESETS_AT_S),
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
            _openai("usage_limit_reached", "The usage limit has been reached", plan_type="pro", resets_at=RESETS_AT_S),
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


class Tool(NamedTuple):
    """A call of a tool that the agent program offers."""

    name: str
    arguments: Body


class Answer(NamedTuple):
    """An answer of the model: a tool call, or else a text. ``number`` tells the answers of a session apart."""

    number: int
    tool: Tool | None = None
    text: str = DONE

    @property
    def identifier(self) -> str:
        """The identifier of the answer."""
        return f"answer_{self.number}"

    @property
    def call(self) -> str:
        """The identifier of the tool call."""
        return f"call_{self.number}"


_BASH: Final[Body] = {"command": SHELL, "description": "run the tests"}
_MADE: Final[Body] = {"content": "hello"}

WRITERS: Final = (
    Tool("Write", {"file_path": FILE, **_MADE}),
    Tool("write", {"filePath": FILE, **_MADE}),
    Tool("write_file", {"file_path": FILE, **_MADE}),
    Tool("exec_command", {"cmd": f"echo hello > {FILE}"}),
)
"""The tools of agent programs that write a file."""

SHELLS: Final = (
    Tool("Bash", _BASH),
    Tool("bash", _BASH),
    Tool("run_shell_command", _BASH),
    Tool("exec_command", {"cmd": SHELL}),
)
"""The tools of agent programs that run a command."""

_ANSWERED: Final = ('"tool_result"', '"role":"tool"', '"function_call_output"', '"functionResponse"')


def answer(body: str, mode: Mode, number: int) -> Answer | None:
    """Return the answer to a request; None for no answer at all."""
    if mode not in {Mode.WRITE, Mode.SHELL, Mode.HANG}:
        return Answer(number)
    if any(each in body for each in _ANSWERED):
        return None if mode is Mode.HANG else Answer(number)
    tools = SHELLS if mode is Mode.SHELL else WRITERS
    offered = next((tool for tool in tools if f'"name":"{tool.name}"' in body), None)
    if offered is None and '"functionDeclarations"' in body:
        offered = Tool("write_file", {"file_path": FILE, **_MADE})  # a model may use a tool that it was not offered
    if offered is not None:
        return Answer(number, offered)
    return None if mode is Mode.HANG else Answer(number, text=EDIT)


class Service(ThreadingHTTPServer):
    """The service on a free port of loopback, in one mode; ``served`` has the paths of its requests."""

    daemon_threads = True

    def __init__(self, mode: Mode) -> None:
        """Listen; the service answers as soon as it is entered."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode: Final = mode
        self.served: Final[list[str]] = []

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_args: object) -> None:
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
        self.service.served.append(path)
        if "count" in path:
            self._send(200, {"input_tokens": 1, "totalTokens": 1})
        elif path.endswith("/messages"):
            self._answer("anthropic", body, _messages)
        elif path.endswith("/responses"):
            self._answer("openai", body, _responses)
        elif path.endswith("/chat/completions"):
            self._answer("openai", body, _chat if '"stream":true' in body else _whole_chat)
        elif path.endswith(":streamGenerateContent"):
            self._answer("gemini", body, _contents)
        elif path.endswith(":generateContent"):
            self._answer("gemini", body, _content)
        else:
            self._send(200, {})

    def _answer(self, dialect: str, body: str, spoken: Callable[[Answer], Iterator[str] | Body]) -> None:
        mode = self.service.mode
        if failure := FAILURES[dialect].get(mode):
            self._send(failure.status, failure.body, failure.headers)
            return
        found = answer(body, mode, len(self.service.served))
        if found is None:
            time.sleep(HANG_S)
            return
        said = spoken(found)
        if isinstance(said, dict):
            self._send(200, said)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for line in said:
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


def _event(kind: str, data: Body) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def _messages(said: Answer) -> Iterator[str]:
    """Yield an answer of Anthropic's messages."""
    tool = said.tool
    message: Body = {"id": said.identifier, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    usage: Body = {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 40}
    unended: Body = {"content": [], "stop_reason": None, "stop_sequence": None}
    block: Body = {"type": "text", "text": ""}
    delta: Body = {"type": "text_delta", "text": said.text}
    if tool:
        block = {"type": "tool_use", "id": said.call, "name": tool.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(tool.arguments)}
    ended: Body = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield _event("message_start", {"message": {**message, **unended, "usage": usage}})
    yield _event("content_block_start", {"index": 0, "content_block": block})
    yield _event("content_block_delta", {"index": 0, "delta": delta})
    yield _event("content_block_stop", {"index": 0})
    yield _event("message_delta", {"delta": ended, "usage": {"output_tokens": 7}})
    yield _event("message_stop", {})


def _responses(said: Answer) -> Iterator[str]:
    """Yield an answer of OpenAI's responses."""
    tool = said.tool
    text: Body = {"type": "output_text", "text": said.text, "annotations": []}
    item: Body = {
        "type": "message",
        "role": "assistant",
        "id": said.identifier,
        "status": "completed",
        "content": [text],
    }
    if tool:
        called: Body = {"name": tool.name, "arguments": json.dumps(tool.arguments)}
        item = {"type": "function_call", "id": said.identifier, "call_id": said.call, **called}
    used: Body = {"input_tokens": 1200, "input_tokens_details": {"cached_tokens": 1000}, "total_tokens": 1207}
    written: Body = {"output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 2}}
    response: Body = {"id": said.identifier, "object": "response"}
    complete: Body = {**response, "status": "completed", "output": [item], "usage": {**used, **written}}
    yield _event("response.created", {"response": {**response, "status": "in_progress"}})
    yield _event("response.output_item.done", {"output_index": 0, "item": item})
    yield _event("response.completed", {"response": complete})


_CHAT_USAGE: Final[Body] = {"prompt_tokens": 1100, "completion_tokens": 30, "total_tokens": 1130}


def _chat(said: Answer) -> Iterator[str]:
    """Yield an answer of OpenAI's chat completions."""
    tool = said.tool
    delta: Body = {"role": "assistant", "content": said.text}
    if tool:
        function: Body = {"name": tool.name, "arguments": json.dumps(tool.arguments)}
        delta = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": said.call, "type": "function", "function": function}],
        }
    reason = "tool_calls" if tool else "stop"
    chunk: Body = {"id": said.identifier, "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    last: Body = {"index": 0, "delta": {}, "finish_reason": reason}
    yield f"data: {json.dumps({**chunk, 'choices': [{'index': 0, 'delta': delta}]})}\n\n"
    yield f"data: {json.dumps({**chunk, 'choices': [last], 'usage': _CHAT_USAGE})}\n\n"
    yield "data: [DONE]\n\n"


def _whole_chat(said: Answer) -> Body:
    """Return an answer of OpenAI's chat completions that is not streamed."""
    choice: Body = {"index": 0, "message": {"role": "assistant", "content": said.text}, "finish_reason": "stop"}
    answered: Body = {"id": said.identifier, "object": "chat.completion", "created": 1, "model": "mock"}
    return {**answered, "choices": [choice], "usage": _CHAT_USAGE}


def _content(said: Answer) -> Body:
    """Return an answer of Gemini."""
    tool = said.tool
    part: Body = {"text": said.text}
    if tool:
        part = {"functionCall": {"id": said.call, "name": tool.name, "args": tool.arguments}}
    usage: Body = {
        "promptTokenCount": 90,
        "candidatesTokenCount": 5,
        "cachedContentTokenCount": 30,
        "totalTokenCount": 95,
    }
    candidate: Body = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro"}


def _contents(said: Answer) -> Iterator[str]:
    """Yield an answer of Gemini."""
    yield f"data: {json.dumps(_content(said))}\n\n"
