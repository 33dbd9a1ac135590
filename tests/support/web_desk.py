"""A desk that is served on loopback while a test talks to it as a browser, or as another program, does."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from lifefold.interpreters.web.server import Opened, opened
from lifefold.interpreters.web.shelf import Finder

WAIT_S = 60
"""Longer than any answer takes on any machine."""


class Served:
    """A running desk, and a client with its cookie."""

    def __init__(self, desk: Opened) -> None:
        self.desk = desk
        self.base = desk.address.partition("/login")[0]
        self.host = self.base.removeprefix("http://")
        self.secret = desk.token.secret
        self.client = httpx2.Client(base_url=self.base, timeout=WAIT_S)

    def login(self) -> None:
        """Exchange the token for the cookie, as a browser does."""
        answer = self.client.get(self.desk.address)
        assert answer.status_code == 303, answer.text

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """Ask for a page."""
        return self.client.get(path, headers=headers)

    def json(self, path: str, status: int = 200) -> Any:
        """Return a page as JSON, when the log is read."""
        while (answer := self.client.get(path, headers={"accept": "application/json"})).status_code == 503:
            threading.Event().wait(0.1)
        assert answer.status_code == status, answer.text
        return answer.json()

    def give(self, fleet: str, command: dict[str, Any], key: str = "", status: int = 200) -> Any:
        """Give a command as the script of a page does, and return its answer."""
        headers = {"origin": self.base, "x-lifefold": "desk"} | ({"idempotency-key": key} if key else {})
        answer = self.client.post(f"/fleets/{fleet}/commands", json=command, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()


@contextmanager
def served(
    logs: Sequence[Path], *, port: int = 0, find: Finder | None = None, reports: Sequence[Path] = ()
) -> Generator[Served]:
    """Serve the desk of some logs, or of those that are found, and of reports, with a client that is logged in."""
    with opened(logs, port=port, find=find, reports=reports) as desk:
        thread = threading.Thread(target=desk.run, daemon=True)
        thread.start()
        try:
            served = Served(desk)
            with served.client:
                served.login()
                while (page := served.json("/index.json"))["reading"]:
                    threading.Event().wait(0.1)
                assert all(log["at"]["seq"] for log in page["fleets"])
                yield served
        finally:
            desk.leave()
            thread.join(WAIT_S)
            assert not thread.is_alive()
