"""The answers of a model service in four dialects.

The dialects are Anthropic's messages, OpenAI's responses and chat completions, and Gemini's contents. Every answer of
a dialect costs the same, so that tests can add up what a session has cost.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

Body = dict[str, Any]

DONE: Final = "done"


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


class Served(NamedTuple):
    """Tokens that answers of the service have cost, each token in one field."""

    input: int = 0
    cached: int = 0
    output: int = 0

    def plus(self, other: "Served") -> "Served":
        """Return the sum."""
        return Served(self.input + other.input, self.cached + other.cached, self.output + other.output)


COSTS: Final = {
    "messages": Served(100, 40, 7),
    "responses": Served(200, 1000, 7),
    "completions": Served(1100, 0, 30),
    "contents": Served(60, 30, 5),
}
"""What an answer costs, in each dialect."""


def _event(kind: str, data: Body) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def messages(said: Answer) -> Iterator[str]:
    """Yield an answer of Anthropic's messages."""
    tool = said.tool
    message: Body = {"id": said.identifier, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    cost = COSTS["messages"]
    usage: Body = {"input_tokens": cost.input, "output_tokens": 1, "cache_read_input_tokens": cost.cached}
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
    yield _event("message_delta", {"delta": ended, "usage": {"output_tokens": cost.output}})
    yield _event("message_stop", {})


def responses(said: Answer) -> Iterator[str]:
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
    cost = COSTS["responses"]
    read = cost.input + cost.cached
    used: Body = {"input_tokens": read, "input_tokens_details": {"cached_tokens": cost.cached}}
    written: Body = {"output_tokens": cost.output, "output_tokens_details": {"reasoning_tokens": 2}}
    total: Body = {"total_tokens": read + cost.output}
    response: Body = {"id": said.identifier, "object": "response"}
    complete: Body = {**response, "status": "completed", "output": [item], "usage": {**used, **written, **total}}
    yield _event("response.created", {"response": {**response, "status": "in_progress"}})
    yield _event("response.output_item.done", {"output_index": 0, "item": item})
    yield _event("response.completed", {"response": complete})


_CHAT_USAGE: Final[Body] = {
    "prompt_tokens": COSTS["completions"].input,
    "completion_tokens": COSTS["completions"].output,
    "total_tokens": sum(COSTS["completions"]),
}


def chat(said: Answer) -> Iterator[str]:
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


def whole_chat(said: Answer) -> Body:
    """Return an answer of OpenAI's chat completions that is not streamed."""
    choice: Body = {"index": 0, "message": {"role": "assistant", "content": said.text}, "finish_reason": "stop"}
    answered: Body = {"id": said.identifier, "object": "chat.completion", "created": 1, "model": "mock"}
    return {**answered, "choices": [choice], "usage": _CHAT_USAGE}


def content(said: Answer) -> Body:
    """Return an answer of Gemini."""
    tool = said.tool
    part: Body = {"text": said.text}
    if tool:
        part = {"functionCall": {"id": said.call, "name": tool.name, "args": tool.arguments}}
    cost = COSTS["contents"]
    usage: Body = {
        "promptTokenCount": cost.input + cost.cached,
        "candidatesTokenCount": cost.output,
        "cachedContentTokenCount": cost.cached,
        "totalTokenCount": sum(cost),
    }
    candidate: Body = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro"}


def contents(said: Answer) -> Iterator[str]:
    """Yield an answer of Gemini."""
    yield f"data: {json.dumps(content(said))}\n\n"
