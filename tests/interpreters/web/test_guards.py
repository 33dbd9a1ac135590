"""Each guard of the desk, tried from outside: requests that are not answered, and what every answer forbids."""

import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from asking_log import LEAVE, WORDS, at_work
from fleet_log import folded
from lifefold.core.fleet.worker.question import REF
from lifefold.interpreters.web.guards import MOST_BODY
from lifefold.interpreters.web.server import NotServed, is_loopback, opened
from web_desk import WAIT_S, Served, served


@pytest.fixture(scope="module", name="log")
def one_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that no request here may change."""
    return at_work(tmp_path_factory.mktemp("log") / "fleet.db", LEAVE, WORDS).path


@pytest.fixture(scope="module", name="desk")
def one_desk(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The desk of that log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with served([log]) as desk:
            yield desk


COMMANDS = "/fleets/fleet/commands"
APPROVE = {"command": "approve", "names": ["ann/Q1"]}


def post(desk: Served, *, without: str = "", **headers: str) -> httpx2.Response:
    """Send a command with the headers of the script, some changed, one left out."""
    usual = {"origin": desk.base, "x-lifefold": "desk", "content-type": "application/json"}
    sent = {name: value for name, value in (usual | headers).items() if name != without}
    return desk.client.post(COMMANDS, content=b'{"command": "approve", "names": ["ann/Q1"]}', headers=sent)


def is_unanswered(log: Path) -> bool:
    """Tell whether no command has reached the log."""
    return len(folded(log).record("worker/ann", REF).waiting) == 2


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "[::ffff:127.0.0.1]"])
def test_a_host_that_the_desk_does_not_have_is_refused(desk: Served, host: str) -> None:
    """DNS rebinding: a name of another site may stand for the loopback address."""
    answer = desk.get("/", host=host)
    assert answer.status_code == 421
    assert "ann" not in answer.text


def test_two_hosts_or_none_are_refused(desk: Served) -> None:
    host, port = desk.host.split(":")
    for head in (b"", f"Host: {desk.host}\r\nHost: evil.example\r\n".encode()):
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n")
            assert raw.recv(100).split()[1] in {b"400", b"421"}


@pytest.mark.parametrize(
    "path",
    ["/", "/fleets/fleet", "/fleets/fleet/agents/ann.json", "/events", "/openapi.json", "/assets/desk.js", "/none"],
)
def test_nothing_is_told_without_the_cookie_or_the_token(desk: Served, path: str) -> None:
    with httpx2.Client(base_url=desk.base, timeout=WAIT_S) as stranger:
        for headers in ({}, {"authorization": "Bearer guess"}, {"cookie": f"{desk.desk.token.cookie}=guess"}):
            answer = stranger.get(path, headers=headers)
            assert answer.status_code == 401
            assert "lifefold serve has printed" in answer.json()["error"]


def test_a_wrong_token_gets_no_cookie(desk: Served) -> None:
    with httpx2.Client(base_url=desk.base, timeout=WAIT_S) as stranger:
        for path in ("/login", "/login?token=", "/login?token=guess", f"/login?token={desk.secret}x"):
            answer = stranger.get(path)
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers


def test_the_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get(desk: Served) -> None:
    answer = httpx2.get(desk.desk.address, timeout=WAIT_S)
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert desk.secret not in cookie


def test_the_token_is_in_a_file_for_its_user_only_while_the_desk_serves(log: Path, state_folder: Path) -> None:
    with opened([log], port=0) as desk:
        file = desk.token.file
        assert file.parent == state_folder / "lifefold"
        assert file.read_text().strip() == desk.token.secret
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert not file.exists()


def test_a_program_may_use_the_token_as_a_bearer(tmp_path: Path) -> None:
    log = at_work(tmp_path / "fleet.db", LEAVE, WORDS).path
    with served([log]) as desk, httpx2.Client(base_url=desk.base, timeout=WAIT_S) as program:
        headers = {"authorization": f"Bearer {desk.secret}", "x-lifefold": "script"}
        assert program.get("/fleets/fleet.json", headers=headers).status_code == 200
        assert program.post(COMMANDS, json=APPROVE, headers=headers).status_code == 200
    assert not is_unanswered(log)


@pytest.mark.parametrize(
    ("without", "headers", "status"),
    [
        ("x-lifefold", {}, 403),
        ("origin", {}, 403),
        ("", {"origin": "http://evil.example"}, 403),
        ("", {"origin": "null"}, 403),
        ("", {"origin": "http://127.0.0.1:1"}, 403),
        ("", {"content-type": "text/plain"}, 415),
        ("", {"content-type": "application/x-www-form-urlencoded"}, 415),
        ("content-type", {}, 415),
    ],
)
def test_a_forged_write_is_refused(desk: Served, log: Path, without: str, headers: dict[str, str], status: int) -> None:
    """A form of another site can send the cookie of a lax browser, and neither the header nor JSON."""
    answer = post(desk, without=without, **headers)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert is_unanswered(log)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_change_nothing(desk: Served, log: Path, method: str) -> None:
    headers = {"origin": desk.base, "x-lifefold": "desk", "content-type": "application/json"}
    assert desk.client.request(method, COMMANDS, headers=headers, json=APPROVE).status_code == 405
    assert desk.client.get(COMMANDS).status_code == 405
    assert is_unanswered(log)


def test_a_body_that_is_too_long_is_refused_whatever_its_headers_say(desk: Served) -> None:
    headers = {"origin": desk.base, "x-lifefold": "desk", "content-type": "application/json"}
    long = b'{"command": "approve", "reason": "' + b"x" * MOST_BODY + b'"}'
    assert desk.client.post(COMMANDS, content=long, headers=headers).status_code == 413

    def pieces() -> Any:
        yield from (b"x" * 10_000 for _ in range(10))

    assert desk.client.post(COMMANDS, content=pieces(), headers=headers).status_code == 413


def test_a_head_without_end_is_refused(desk: Served) -> None:
    host, port = desk.host.split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 100_000)
        assert raw.recv(100).split()[1] == b"400"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/%2e%2e/app.py",
        "/assets/..%2fapp.py",
        "/assets/app.py",
        "/assets//etc/passwd",
        "/machines/..%2f..%2fweb%2fapp.py",
        "/machines/__init__",
        "/fleets/..%2f..%2fetc/log",
        "/fleets/fleet/agents/..%2f..%2f",
        "/fleets/fleet/tasks/%00",
    ],
)
def test_no_address_leads_out_of_what_the_desk_shows(desk: Served, path: str) -> None:
    answer = desk.client.get(httpx2.URL(desk.base + path))
    assert answer.status_code == 404
    assert "import" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("path", ["/", "/fleets/fleet", "/none", "/assets/desk.js", "/index.json"])
def test_every_answer_forbids_what_pages_do_not_need(desk: Served, path: str) -> None:
    first, second = desk.get(path), desk.get(path)
    policy = first.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert "frame-ancestors 'none'" in policy
    assert policy != second.headers["content-security-policy"]
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["cache-control"] == "no-store"
    assert first.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in first.headers


@pytest.mark.parametrize("path", ["/", "/fleets/fleet/agents/ann", "/fleets/fleet/tasks/T1", "/fleets/fleet/timeline"])
def test_no_page_names_another_site_or_has_inline_code(desk: Served, path: str) -> None:
    text = desk.get(path).text.replace("http://www.w3.org/2000/svg", "")
    assert "<script src=" in text
    for foreign in ("http://", "https://", "//cdn", "<script>", "onclick", "javascript:", " style="):
        assert foreign not in text


@pytest.mark.parametrize(
    ("host", "is_one"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("192.0.2.1", False), ("desk.example", False)],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, is_one: bool) -> None:  # noqa: FBT001 - the expectation
    assert is_loopback(host) is is_one


def test_a_port_that_is_taken_is_refused_with_what_helps(desk: Served, log: Path) -> None:
    taken = int(desk.host.rpartition(":")[2])
    with (
        pytest.raises(NotServed, match=f"127.0.0.1:{taken} cannot be used .*; choose another: --port N"),
        opened([log], port=taken),
    ):
        pass
