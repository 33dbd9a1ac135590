"""The example of a pager: the operator on duty gets each fatal error once, and the fleet continues in any case."""

import re
from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest

from example_commands import EXAMPLES, lifefold
from examples import pager
from examples.pager import Pager
from fleet_bench import FleetBench
from lifefold.effects import LogFatal
from lifefold.interpreters.engine import EffectContext
from lifefold.interpreters.testing import Bench, InterpreterConformance
from webhook import SILENCE, Receiver, receiving


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pager, "PAUSE_S", 0)


@pytest.fixture
def receiver() -> Generator[Receiver]:
    with receiving() as found:
        yield found


class PagerBench(FleetBench):
    """The bench with the records of the receiver: a known key is a repetition."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        super().__init__(folder, lambda around: Pager(around, receiver.url, "2s"))
        self.receiver = receiver
        self.examples = [each for each in self.examples if isinstance(each.what, LogFatal)]

    async def look(self) -> object:
        return await super().look(), {key: message["message"] for key, message in self.receiver.got}


@pytest.fixture
def bench(tmp_path: Path, receiver: Receiver) -> Bench:
    return PagerBench(tmp_path, receiver)


class TestThePager(InterpreterConformance):
    """Every check of the kit, with the one effect that it replaces."""


def page(bench: FleetBench, url: str, message: str = "no key", index: int = 0, timeout: str = "2s") -> None:
    """Let a pager perform the effect at a place of the log."""
    within = bench.examples[0].within
    handler = Pager(bench.context, url, timeout)
    anyio.run(handler.page, LogFatal(message), EffectContext(within, "session", 7, index))


def test_a_message_names_agent_and_reason_and_has_the_effects_identity(tmp_path: Path, receiver: Receiver) -> None:
    """The key is the fleet's run and the place in its log: the same when it is performed again, and no other's."""
    bench = FleetBench(tmp_path)
    for index in (0, 0, 1):
        page(bench, receiver.url, index=index)
    keys = [key for key, _ in receiver.got]
    assert keys == [f"{bench.context.run}/worker/brief/7/{index}" for index in (0, 0, 1)]
    told = {"id": keys[0], "fleet": "bench", "agent": "brief", "message": "no key"}
    assert receiver.got[0] == (keys[0], told)


def test_operators_get_the_standard_notices_too(tmp_path: Path, receiver: Receiver) -> None:
    """The pager hands over to the handler below."""
    bench = FleetBench(tmp_path)
    page(bench, receiver.url)
    assert bench.handlers.notices == [("brief", "no key")]


@pytest.mark.parametrize("answers", [[500], [503, 429], [SILENCE]], ids=str)
def test_what_may_pass_is_tried_again_under_the_same_key(
    tmp_path: Path, receiver: Receiver, answers: list[int]
) -> None:
    """The receiver may have taken it although no answer came."""
    bench, tries = FleetBench(tmp_path), len(answers) + 1
    receiver.answers = answers
    page(bench, receiver.url, timeout="500ms")
    assert len(receiver.got) == tries
    assert len({key for key, _ in receiver.got}) == 1
    assert bench.handlers.notices == [("brief", "no key")]


@pytest.mark.parametrize(
    ("answers", "tries", "why"),
    [
        ([400], 1, "answers 400 Bad Request"),
        ([302], 1, "answers 302 Found"),
        ([500, 502, 503, 200], 3, "answers 503 Service Unavailable"),
        ([SILENCE] * 4, 3, "(timed out|no answer in 0.1 s)"),
    ],
    ids=str,
)
def test_a_receiver_without_an_answer_is_given_up_with_a_notice(
    tmp_path: Path, receiver: Receiver, answers: list[int], tries: int, why: str
) -> None:
    """Bounded in tries and in time; nothing is raised, and no redirect makes another message of it."""
    bench = FleetBench(tmp_path)
    receiver.answers = answers
    page(bench, receiver.url, timeout="100ms")
    (_, first), (_, second) = bench.handlers.notices
    assert first == "no key"
    assert len(receiver.got) == tries
    assert second.startswith(f"the page was not sent: {origin(receiver.url)}")
    assert urlsplit(receiver.url).path not in second
    assert re.search(why, second), second
    assert receiver.asked_otherwise == 0


def origin(url: str) -> str:
    """Return what of a receiver's address may be told: its path, say, is often what lets one in."""
    return f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("htps://me:secret@hooks/secret", "htps://hooks"),
        ("https://hooks/a secret", "https://hooks"),
        ("hooks/secret", "://"),
    ],
)
def test_an_address_that_cannot_be_is_refused_without_its_secrets(tmp_path: Path, url: str, told: str) -> None:
    """Nor are a name and a password told."""
    with pytest.raises(ValueError, match=r"accepted: http://\.\.\. or https://\.\.\.") as refused:
        Pager(FleetBench(tmp_path).context, url)
    assert f"found '{told}'" in str(refused.value)
    assert "secret" not in str(refused.value)


def fleet_file(folder: Path, url: str) -> Path:
    """Return a copy of the example's fleet file with another receiver."""
    text = (EXAMPLES / "pager.toml").read_text()
    assert "http://127.0.0.1:8000/page" in text
    (folder / "pager.toml").write_text(text.replace("http://127.0.0.1:8000/page", url))
    (folder / "pager.py").write_text((EXAMPLES / "pager.py").read_text())
    return folder / "pager.toml"


@pytest.mark.usefixtures("recorded_place")
def test_a_fleet_whose_agent_gives_up_pages_once(tmp_path: Path, receiver: Receiver) -> None:
    """``lifefold run`` of the example, from its fleet file; another run of it has nothing more to say."""
    file = fleet_file(tmp_path, receiver.url)
    done = lifefold("run", str(file), "--transitions", code=1)
    ((key, message),) = receiver.got
    assert message["message"] == "1 error in all (max_total_errors = 1); the last was exit status 1: no key"
    assert (message["fleet"], message["agent"], message["id"]) == ("pager", "ann", key)
    assert "ann: 1 error in all (max_total_errors = 1)" in done.stdout
    lifefold("run", str(file), "--transitions", code=1)
    assert len(receiver.got) == 1


@pytest.mark.usefixtures("recorded_place")
def test_a_pager_that_is_down_does_not_stop_the_fleet(tmp_path: Path) -> None:
    """It ends as it would have ended without one, and says that the page was not sent."""
    with receiving() as gone:
        url = gone.url
    done = lifefold("run", str(fleet_file(tmp_path, url)), "--transitions", code=1)
    assert "ann: 1 error in all (max_total_errors = 1)" in done.stdout
    assert f"ann: the page was not sent: {origin(url)}: [Errno 111] Connection refused" in done.stdout
    assert url not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new", "key", "told"),
    [
        ("http://127.0.0.1:8000/page", "ftp://duty", "url", "ValueError: url: found 'ftp://duty'; accepted: http://"),
        ('timeout = "2s"', 'timeout = "soon"', "timeout", "ValueError: found 'soon'; accepted: a duration as text"),
    ],
    ids=["url", "timeout"],
)
def test_an_option_that_cannot_be_is_told_before_anything_begins(
    tmp_path: Path, old: str, new: str, key: str, told: str
) -> None:
    """With its place in the fleet file, and no place in lifefold."""
    file = fleet_file(tmp_path, "http://127.0.0.1:8000/page")
    file.write_text(file.read_text().replace(old, new))
    refused = lifefold("run", str(file), "--transitions", code=2)
    line = 1 + [each.partition(" =")[0] for each in file.read_text().splitlines()].index(key)
    assert f"{file}:{line}: interpreters.pager:Pager.{key}: pager:Pager cannot be made: {told}" in refused.stderr
    assert "units.py" not in refused.stderr
    assert not (tmp_path / ".lifefold").exists()
