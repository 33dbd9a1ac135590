"""A receiver of webhooks: a real server on this machine, which answers as a test says."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class Receiver:
    """What a server has got, as pairs of an ``Idempotency-Key`` and a message, and what it answers next."""

    def __init__(self, address: tuple[str, int], hung_up: Event) -> None:
        self.url = f"http://{address[0]}:{address[1]}/page"
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[int] = []
        self.asked_otherwise = 0
        self.hung_up = hung_up


SILENCE = 0
"""An answer that does not come before the test is over."""


@contextmanager
def receiving() -> Generator[Receiver]:
    """Run a receiver. It says 200, unless there are other ``answers``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.got.append((self.headers["Idempotency-Key"], message))
            answer = receiver.answers.pop(0) if receiver.answers else 200
            if answer == SILENCE:
                receiver.hung_up.wait()
                return
            self.send_response(answer)
            if 300 <= answer < 400:
                self.send_header("Location", receiver.url)
            self.end_headers()

        def do_GET(self) -> None:
            receiver.asked_otherwise += 1
            self.send_response(200)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(("127.0.0.1", server.server_port), Event())
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.hung_up.set()
            server.shutdown()
            thread.join()
