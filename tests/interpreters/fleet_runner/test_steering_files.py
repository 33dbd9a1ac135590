"""The files of messages for a running session: in order, without a gap, and the same when they are written again."""

from pathlib import Path

import anyio
import msgspec
import pytest

from aggregate_hand import Hand
from fleet_worker import following, next_task, start
from lifefold.core.fleet.worker import mailbox, steering
from lifefold.core.lifecycles import session
from lifefold.effects import SteerSession
from lifefold.interpreters.acp_client.inbox import Inbox
from lifefold.interpreters.engine import EffectContext
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.fleet_runner.steering import Steersman


class Desk:
    """A worker whose running session takes messages, and the handler that writes them."""

    def __init__(self, folder: Path) -> None:
        self.notices = Notices()
        self.files = FleetFolder(folder / "fleet.db")
        self.steersman = Steersman(self.files, self.notices)
        self.worker: Hand = start(next_task(following(more={steering.REF: steering.Steering()})))
        self.inbox = self.files.inbox(self.worker.aggregate.key, self.worker.record(session.machine.name).attempt)

    def send(self, text: str) -> None:
        """Send the agent a message, and perform what follows."""
        self.worker.give("mailbox", mailbox.OperatorMessageArrived(text, urgent=False))
        (effect,) = (each.effect for each in self.worker.reaction.effects if isinstance(each.effect, SteerSession))
        context = EffectContext(self.worker.aggregate, steering.REF, self.worker.aggregate.version, 0)
        anyio.run(self.steersman.steer_session, effect, context)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_message_that_could_not_be_written_comes_before_the_next_one(desk: Desk) -> None:
    """A session that has taken a message counts as one that has taken all before it, so no number may be missing."""
    desk.inbox.parent.mkdir(parents=True)
    desk.inbox.write_text("no folder")
    desk.send("one")
    assert [text.partition(":")[0] for _, text in desk.notices.history] == ["its session does not get message 1"]
    desk.inbox.unlink()
    desk.send("two")
    taken = Inbox(str(desk.inbox)).take()
    assert [(each.number, each.text) for each in taken] == [(1, "one"), (2, "two")]


def test_a_message_is_not_written_while_one_before_it_cannot_be(desk: Desk) -> None:
    """Both wait for the next prompt then."""
    (desk.inbox / "00001.json.new").mkdir(parents=True)
    (desk.inbox / "00001.json").mkdir()
    desk.send("one")
    desk.send("two")
    assert Inbox(str(desk.inbox)).take() == ()
    assert len(desk.notices.history) == 2


def test_a_message_that_is_there_is_not_written_again(desk: Desk) -> None:
    """Its file says whether it was urgent, which the mailbox does not know."""
    desk.send("one")
    first = desk.inbox / "00001.json"
    first.write_bytes(msgspec.json.encode({"number": 1, "text": "one", "urgent": True}))
    desk.send("two")
    assert [each.urgent for each in Inbox(str(desk.inbox)).take()] == [True, False]
