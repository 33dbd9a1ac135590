"""Which requests are answered: the one place that decides so, before any page sees a request.

| guard | refusal |
|---|---|
| the host is one that this desk has (against DNS rebinding) | 421 |
| the cookie of this desk, or its token as a bearer | 401 |
| a write comes from a page of this desk, and has its own header (against forged requests) | 403 |
| a write is JSON | 415 |
| a body has at most ``MOST_BODY`` bytes | 413 |

Every answer forbids all that pages do not need: other sites, frames, inline code without the nonce of the answer.
"""

import secrets
from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lifefold.interpreters.web.token import Token

OWN_HEADER: Final = "x-lifefold"
"""A header that a form of another site cannot send."""

MOST_BODY: Final = 65_536
"""The most bytes of the body of a request."""

LOGIN: Final = "/login"
"""The address that exchanges the token for a cookie."""

_READS: Final = frozenset({"GET", "HEAD"})

_FIXED: Final = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

NEEDS_LOGIN: Final = "open the address that lifefold serve has printed, or send its token as a bearer"


class Refused(Exception):
    """A request that is not answered: the status, and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        """Refuse with a status."""
        super().__init__(why)
        self.status: Final = status


class Guards:
    """An application behind the guards."""

    def __init__(self, app: ASGIApp, token: Token, hosts: Collection[str]) -> None:
        """Guard an application; ``hosts`` are the accepted values of ``Host``, with their ports."""
        self._app: Final = app
        self._token: Final = token
        self._hosts: Final = frozenset(each.lower() for each in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        nonce = secrets.token_urlsafe(16)
        scope.setdefault("state", {})["nonce"] = nonce

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _FIXED.items():
                    headers[name] = value
                headers["content-security-policy"] = _policy(nonce)
            await send(message)

        try:
            self._check(scope)
            body = b"" if scope["method"] in _READS else await _body(receive)
        except Refused as refused:
            await JSONResponse({"error": str(refused)}, refused.status)(scope, receive, guarded)
            return
        await self._app(scope, receive if scope["method"] in _READS else _given(body, receive), guarded)

    def _check(self, scope: Scope) -> None:
        """Raise ``Refused`` for a request that breaks a guard."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Refused(421, f"this desk is at {', '.join(sorted(self._hosts))}")
        is_write = scope["method"] not in _READS
        if is_write and headers.get("origin", f"http://{hosts[0]}").lower() != f"http://{hosts[0].lower()}":
            raise Refused(403, "the request comes from a page of another site")
        if scope["path"] == LOGIN and not is_write:
            return
        is_bearer = self._token.is_secret(headers.get("authorization", "").removeprefix("Bearer "))
        cookie = cookie_parser(headers.get("cookie", "")).get(self._token.cookie, "")
        if not is_bearer and not self._token.is_session(cookie):
            raise Refused(401, NEEDS_LOGIN)
        if not is_write:
            return
        if OWN_HEADER not in headers:
            raise Refused(403, f"a write needs the header {OWN_HEADER}, which no form of another site can send")
        if not is_bearer and "origin" not in headers:
            raise Refused(403, "a write of a browser needs its origin")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "a write is JSON: content-type: application/json")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            raise Refused(413, f"a request has at most {MOST_BODY:,} bytes")


def _policy(nonce: str) -> str:
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self';"
        " img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


async def _body(receive: Receive) -> bytes:
    """Return the body of a request. Raises ``Refused`` for one that is too long, whatever its headers say."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the request has ended before its body")
        part = message.get("body", b"")
        parts.append(part)
        size, more = size + len(part), message.get("more_body", False)
        if size > MOST_BODY:
            raise Refused(413, f"a request has at most {MOST_BODY:,} bytes")
    return b"".join(parts)


def _given(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that has the body already."""
    is_given = False

    async def receive_given() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_given
