"""A pager: the operator on duty is called when an agent has given up. Replaces one effect, ``LogFatal``.

It shows three things:

- a handler of one effect that calls the handler below it
- an effect that is performed again after a crash, and reaches the receiver's operator once
- an external service that may be down, and does not stop the fleet

    lifefold run examples/pager.toml

The receiver gets a POST with a JSON object: ``id``, ``fleet``, ``agent``, ``message``. A message may come more than
once, with the same ``Idempotency-Key``. It does if no answer came in time, or if the runner died before it recorded the
effect. The key contains the fleet, the log, and the position in the log, so no other message has it.
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
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.fleet_file import parse_duration_ms
from lifefold.interpreters.fleet_runner import RunContext

TRIES: Final = 3
"""The number of tries. With the timeout and the pauses, it limits how long the agent's next effect waits."""

PAUSE_S: Final = 0.5
"""The first pause between two tries; each further pause doubles."""

WORTH_ANOTHER_TRY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The status codes after which the same message may succeed later. After any other error, it is not sent again."""


class Pager:
    """Calls a webhook for every ``LogFatal``, after the fleet's own handler."""

    def __init__(self, context: RunContext, url: str, timeout: str = "5s") -> None:
        """Take the options of the fleet file. Invalid ones raise here, before the run begins."""
        parts = urlsplit(url)
        self._receiver: Final = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # the rest may be secret
        if parts.scheme not in {"http", "https"} or not parts.hostname or " " in url or not url.isprintable():
            raise ValueError(f"url: found {self._receiver!r}; accepted: http://... or https://... without blanks")
        self._url: Final = url
        self._timeout_s: Final = parse_duration_ms(timeout) / 1_000
        self._context: Final = context

    @handles(LogFatal)
    async def page(self, effect: LogFatal, context: EffectContext) -> None:
        """Report on the screen, then send the message; if that fails, report the failure on the screen."""
        await self._context.below.effects[LogFatal](effect, context)
        agent = context.within.key
        key = "/".join(str(part) for part in (self._context.run, *context.identity))
        said = in_plain_words(effect.message)
        message = {"id": key, "fleet": self._context.fleet.name, "agent": agent, "message": said}
        trouble = await self._send(key, message)
        if trouble:
            self._context.tell(agent, f"the page was not sent: {trouble}")

    async def _send(self, key: str, message: dict[str, str]) -> str:
        """Send a message until it is accepted; return the error if it is not. Nothing is raised."""
        trouble = ""
        for number in range(TRIES):
            if number:
                await anyio.sleep(PAUSE_S * 2 ** (number - 1))
            try:
                with anyio.fail_after(self._timeout_s):
                    await to_thread.run_sync(self._post, key, message, abandon_on_cancel=True)
            except HTTPError as error:
                error.close()
                trouble = f"{self._receiver} answers {error.code} {error.reason}"
                if error.code not in WORTH_ANOTHER_TRY:
                    return trouble
            except (OSError, HTTPException, ValueError) as error:
                why = str(getattr(error, "reason", error))
                trouble = f"{self._receiver}: {why or f'no answer in {self._timeout_s:g} s'}"
            else:
                return ""
        return trouble

    def _post(self, key: str, message: dict[str, str]) -> None:
        """Send a message once. Every answer 2xx is a receipt; all failures are raised."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        request = Request(self._url, json.dumps(message).encode(), headers, method="POST")  # noqa: S310 - see __init__
        with build_opener(NoRedirects).open(request, timeout=self._timeout_s):
            pass


class NoRedirects(HTTPRedirectHandler):
    """Treats a redirect as an error: following it would send a GET instead of the message."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        """Follow no redirect."""
