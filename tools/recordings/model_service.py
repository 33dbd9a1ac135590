"""A model service on loopback that answers as a recording needs it: with text, a tool call, or an error.

It speaks four dialects: Anthropic's messages, OpenAI's responses and chat completions, and Gemini's contents. An error
has the status and the body of the real service, so an agent program takes the path that it would take there.
"""

import json
import time
from collections.abc import Iterator
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar, Final, NamedTuple

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
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed


RESETS_AT_S: Final = 1_795_600_800
"""The time at which a limit of the service ends, in seconds of the epoch."""

SHELL: Final = "echo 'AssertionError: 401 Unauthorized'; exit 1"
FILE: Final = "made.txt"
TEXT: Final = "done"
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
_NO_RETRY: Final = {"x-should-retry": "false"}
_CONTEXT: Final = "This model's maximum context length is 128000 tokens. However, your messages resulted in 210000 tokens."

FAILURES: Final[dict[str, dict[Mode, Failure]]] = {
    "anthropic": {
        Mode.LIMIT: Failure(
            429,
            _anthropic("rate_limit_error", "This request would exceed your account's rate limit."),
            _UNIFIED,
        ),
        Mode.RATE: Failure(
            429,
            _anthropic("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
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
            _openai(
                "usage_limit_reached", "The usage limit has been reached", plan_type="pro", resets_at=RESETS_AT_S
            ),
        ),
        Mode.RATE: Failure(429, _openai("rate_limit_exceeded", "Rate limit reached for mock in organization org-1.")),
        Mode.OVERLOADED: Failure(503, _openai("server_is_overloaded", "The server is overloaded. Try again later.")),
        Mode.TOO_LONG: Failure(400, _openai("context_length_exceeded", _CONTEXT)),
        Mode.LOGIN: Failure(401, _openai("invalid_api_key", "Incorrect API key provided: none.")),
        Mode.CREDIT: Failure(
            429,
            _openai("insufficient_quota", "You exceeded your current quota, please check your plan and billing details."),
        ),
    },
    "gemini": {
        Mode.LIMIT: Failure(
            429,
            _gemini(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota: requests per day. Limit: 100."),
        ),
        Mode.RATE: Failure(429, _gemini(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")),
        Mode.OVERLOADED: Failure(
            503, _gemini(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
        ),
        Mode.TOO_LONG: Failure(
            400,
            _gemini(400, "INVALID_ARGUMENT", "The input token count (2100000) exceeds the maximum number of tokens allowed (1048576)."),
        ),
        Mode.LOGIN: Failure(
            400, _gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
        ),
        Mode.CREDIT: Failure(
            403, _gemini(403, "PERMISSION_DENIED", "Billing is not enabled for this project.")
        ),
    },
}  # fmt: skip


class Tool(NamedTuple):
    """A call of a tool that the agent program offers."""

    name: str
    arguments: Body


def _tool(body: bytes, mode: Mode) -> Tool | None:
    """Return the call of a tool for this request; None for an answer in text."""
    write = mode in {Mode.WRITE, Mode.HANG}
    candidates = (
        (Tool("Write", {"file_path": FILE, "content": "hello"}), Tool("write", {"filePath": FILE, "content": "hello"}),
         Tool("write_file", {"file_path": FILE, "content": "hello"}),
         Tool("exec_command", {"cmd": f"echo hello > {FILE}"}), Tool("shell", {"command": ["sh", "-c", f"echo hello > {FILE}"]}))
        if write
        else (Tool("Bash", {"command": SHELL, "description": "run the tests"}), Tool("bash", {"command": SHELL, "description": "run the tests"}),
              Tool("run_shell_command", {"command": SHELL, "description": "run the tests"}),
              Tool("exec_command", {"cmd": SHELL}), Tool("shell", {"command": ["sh", "-c", SHELL]}))
    )  # fmt: skip
    offered = [tool for tool in candidates if f'"name":"{tool.name}"'.encode() in body.replace(b'": "', b'":"')]
    return offered[0] if offered else None


_ANSWERED: Final = (b'"tool_result"', b'"role":"tool"', b'"function_call_output"', b'"functionResponse"')


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

    def __enter__(self) -> "Service":
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_args: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Service
    dialects: ClassVar[tuple[str, ...]] = ("/messages", "/responses", "/chat/completions", "enerateContent")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it
        """Print nothing."""

    def do_HEAD(self) -> None:  # noqa: N802  # the base class asks for it
        """Answer a request for headers."""
        self._send(200, {})

    def do_GET(self) -> None:  # noqa: N802  # as above
        """Answer a request for lists with an empty one."""
        self._send(200, {"data": [], "object": "list"})

    def do_POST(self) -> None:  # noqa: N802  # as above
        """Answer a request to the model."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        self.server.served.append(path)
        if "count" in path:
            self._send(200, {"input_tokens": 1, "totalTokens": 1})
        elif path.endswith("/messages"):
            self._answer("anthropic", body, _messages)
        elif path.endswith("/responses"):
            self._answer("openai", body, _responses)
        elif path.endswith("/chat/completions"):
            self._answer("openai", body, _chat)
        elif path.endswith("enerateContent"):
            self._answer("gemini", body, _contents)
        else:
            self._send(200, {})

    def _answer(self, dialect: str, body: bytes, spoken: Any) -> None:
        mode, tool, number = self.server.mode, None, len(self.server.served)
        if failure := FAILURES[dialect].get(mode):
            self._send(*failure)
            return
        if mode in {Mode.WRITE, Mode.SHELL, Mode.HANG}:
            answered = any(each in body.replace(b'": "', b'":"') for each in _ANSWERED)
            tool = None if answered else _tool(body, mode)
            if mode is Mode.HANG and answered:
                time.sleep(HANG_S)
        streamed = b'"stream":true' in body.replace(b": ", b":") or "streamGenerate" in self.path
        if not streamed and spoken in {_chat, _contents}:
            self._send(200, _whole(spoken, tool, number))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for line in spoken(tool, number):
            self.wfile.write(line.encode())
            self.wfile.flush()

    def _send(self, status: int, body: Body, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _event(data: Body) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


def _messages(tool: Tool | None, number: int) -> Iterator[str]:
    usage: Body = {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 40}
    message: Body = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    yield _event({"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}})
    block: Body = {"type": "tool_use", "id": f"toolu_{number}", "name": tool.name, "input": {}} if tool else {"type": "text", "text": ""}
    yield _event({"type": "content_block_start", "index": 0, "content_block": block})
    delta: Body = {"type": "input_json_delta", "partial_json": json.dumps(tool.arguments)} if tool else {"type": "text_delta", "text": TEXT}
    yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
    yield _event({"type": "content_block_stop", "index": 0})
    reason = "tool_use" if tool else "end_turn"
    yield _event({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 7}})
    yield _event({"type": "message_stop"})


def _responses(tool: Tool | None, number: int) -> Iterator[str]:
    item: Body = (
        {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": tool.name, "arguments": json.dumps(tool.arguments)}
        if tool
        else {"type": "message", "role": "assistant", "id": f"msg_{number}", "status": "completed", "content": [{"type": "output_text", "text": TEXT, "annotations": []}]}
    )  # fmt: skip
    usage: Body = {"input_tokens": 1200, "input_tokens_details": {"cached_tokens": 1000}, "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 1207}
    response: Body = {"id": f"resp_{number}", "object": "response"}
    yield _event({"type": "response.created", "response": {**response, "status": "in_progress"}})
    yield _event({"type": "response.output_item.done", "output_index": 0, "item": item})
    yield _event({"type": "response.completed", "response": {**response, "status": "completed", "output": [item], "usage": usage}})


_CHAT_USAGE: Final[Body] = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


def _chat(tool: Tool | None, number: int) -> Iterator[str]:
    call: Body = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": tool.name, "arguments": json.dumps(tool.arguments)}} if tool else {}
    delta: Body = {"role": "assistant", "tool_calls": [call]} if tool else {"role": "assistant", "content": TEXT}
    reason = "tool_calls" if tool else "stop"
    for choice, usage in (({"delta": delta}, {}), ({"delta": {}, "finish_reason": reason}, {"usage": _CHAT_USAGE})):
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [{"index": 0, **choice}], **usage}
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def _content(tool: Tool | None, number: int) -> Body:
    part: Body = {"functionCall": {"id": f"call_{number}", "name": tool.name, "args": tool.arguments}} if tool else {"text": TEXT}
    usage: Body = {"promptTokenCount": 90, "candidatesTokenCount": 5, "cachedContentTokenCount": 30, "totalTokenCount": 95}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro"}


def _contents(tool: Tool | None, number: int) -> Iterator[str]:
    yield f"data: {json.dumps(_content(tool, number))}\n\n"


def _whole(spoken: Any, tool: Tool | None, number: int) -> Body:
    """Return an answer that is not streamed."""
    if spoken is _contents:
        return _content(tool, number)
    message: Body = {"role": "assistant", "content": TEXT}
    choice: Body = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "mock", "choices": [choice], "usage": _CHAT_USAGE}
