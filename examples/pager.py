"""A pager: whoever is on duty is called when an agent has given up. Replaces one effect, ``LogFatal``.

What it shows: a handler of one effect that hands over to the one below; an effect that is performed again after a crash
and is not heard twice; a world that may be down, and does not stop the fleet.

    lifefold run examples/pager.toml

The receiver gets a POST with a JSON object: ``id``, ``fleet``, ``agent``, ``message``. It may come more than once, with
the same ``Idempotency-Key``: when no answer came in time, and when the runner died before it had noted that it was
sent. Fleet, log and place in the log are in the key, so that no other message ever has it.
"""

import json
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import anyio
from anyio import to_thread

from lifefold.effects import LogFatal
from lifefold.interpreters.engine import EffectContext, handles
from lifefold.interpreters.fleet_file import parse_duration_ms
from lifefold.interpreters.fleet_runner import RunContext

TRIES: Final = 3
"""How often it is tried. With the time-out and the pauses this bounds how long the agent's next effect waits."""

PAUSE_S: Final = 0.5
"""The first pause between two tries; each is twice as long as the one before."""

WORTH_ANOTHER_TRY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""What a server says when the same message may be welcome later. Whatever else it refuses, it will refuse again."""


class Pager:
    """Calls a webhook for every ``LogFatal``, and then lets the fleet's own handler tell people as ever."""

    def __init__(self, surroundings: RunContext, url: str, timeout: str = "5s") -> None:
        """Take the options of the fleet file. What is wrong with them is raised here, before anything has begun."""
        parts = urlsplit(url)
        self._receiver: Final = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # the rest may be secret
        if parts.scheme not in {"http", "https"} or not parts.hostname or " " in url or not url.isprintable():
            raise ValueError(f"url: found {self._receiver!r}; accepted: http://... or https://... without blanks")
        self._url: Final = url
        self._timeout_s: Final = parse_duration_ms(timeout) / 1_000
        self._surroundings: Final = surroundings

    @handles(LogFatal)
    async def page(self, effect: LogFatal, occasion: EffectContext) -> None:
        """Tell people on the screen, then whoever is on duty; if that cannot be, say so on the screen."""
        await self._surroundings.below.effects[LogFatal](effect, occasion)
        agent = occasion.within.key
        key = "/".join(str(part) for part in (self._surroundings.run, *occasion.identity))
        message = {"id": key, "fleet": self._surroundings.fleet.name, "agent": agent, "message": effect.message}
        trouble = await self._send(key, message)
        if trouble:
            self._surroundings.tell(agent, f"nobody was paged: {trouble}")

    async def _send(self, key: str, message: dict[str, str]) -> str:
        """Send a message until it is taken; return what is wrong if it is not. Nothing is raised."""
        trouble = ""
        for number in range(TRIES):
            if number:
                await anyio.sleep(PAUSE_S * 2 ** (number - 1))
            try:
                with anyio.fail_after(self._timeout_s):
                    await to_thread.run_sync(self._post, key, message, abandon_on_cancel=True)
            except HTTPError as error:
                error.close()
                trouble = f"{self._receiver} says {error.code} {error.reason}"
                if error.code not in WORTH_ANOTHER_TRY:
                    return trouble
            except (OSError, HTTPException, ValueError) as error:
                why = str(getattr(error, "reason", error))
                trouble = f"{self._receiver}: {why or f'no answer in {self._timeout_s:g} s'}"
            else:
                return ""
        return trouble

    def _post(self, key: str, message: dict[str, str]) -> None:
        """Send a message once. Raises whatever is wrong; any answer of 2xx is a receipt, whatever else it says."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        request = Request(self._url, json.dumps(message).encode(), headers, method="POST")  # noqa: S310 - see __init__
        with build_opener(NoRedirects).open(request, timeout=self._timeout_s):
            pass


class NoRedirects(HTTPRedirectHandler):
    """Takes a redirect for what it is here, a message that was not taken: it would be followed by a GET."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        """Follow nothing."""
