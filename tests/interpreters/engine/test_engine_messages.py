"""Messages between aggregates, and operator commands in the store."""

from collections import Counter

import anyio
import pytest

from engine_harness import START_MS, Pottery, reason
from kiln import Announce, Called, Counted, Doused, Fire, Fired, Heat, Lit, PutAway, Stoked
from lifefold.core.kernel import Envelope, Event, Reaction, Refusal, encode
from lifefold.interpreters.engine import ActivityContext, Interpreter
from lifefold.interpreters.store import Batch

pytestmark = pytest.mark.anyio


def command_of(event: Event, *, ref: str = "kiln", at_ms: int = START_MS, key: str = "") -> bytes:
    """Return what an operator leaves in the store."""
    return encode(Envelope(ref, event, at_ms, "operator", key=key))


async def received(pottery: Pottery) -> list[tuple[str, int, Event]]:
    """Return the messages in the tally's stream: sender, number, event."""
    codec = pottery.engine.ledger.codec
    found = [codec.decode("tally", entry.envelope) for entry in await pottery.entries("tally")]
    return [(each.sender, each.ordinal, each.event) for each in found if each.sender]


async def stoke_often(_activity: Fire, context: ActivityContext) -> None:
    """Stoke ten times, then report as many pots as the name of the firing's kiln has characters."""
    for _ in range(10):
        assert await context.report(Stoked())
    assert await context.report(Fired(7))


async def test_messages_arrive_once_and_in_order(pottery: Pottery) -> None:
    """Of several senders at once, every message of each arrives exactly once, in the order of its numbers."""
    kilns = ("a", "b", "c")
    interpreter = Interpreter(activities={Fire: stoke_often}).over(pottery.hands.interpreter())
    async with pottery.running(*kilns, interpreter=interpreter) as engine:
        for name in kilns:
            engine.offer(f"kiln/{name}", Envelope("kiln", Lit(), START_MS))
        while len(pottery.counted) < 33:
            await pottery.quiet()
        messages = await received(pottery)
    for name in kilns:
        own = [(number, event) for sender, number, event in messages if sender == f"kiln/{name}"]
        assert own == [*((number, Counted(0)) for number in range(1, 11)), (11, Counted(7))]
    assert Counter(pottery.counted) == {0: 30, 7: 3}


@pytest.mark.foreign_log
async def test_a_message_that_comes_again_or_too_early_changes_nothing(pottery: Pottery) -> None:
    """Its number says so: the receiver refuses it, and takes the expected one."""

    def message(ordinal: int) -> Envelope:
        return Envelope("tally", Counted(9), START_MS, "kiln/a", sender="kiln/a", ordinal=ordinal)

    async with pottery.running() as engine:
        assert reason(await engine.send("tally", message(2))) == "overtaking"
        assert isinstance(await engine.send("tally", message(1)), Reaction)
        assert reason(await engine.send("tally", message(1))) == "duplicate"
        assert pottery.counted == (9,)


async def test_a_message_that_its_receiver_does_not_take_is_used_up(pottery: Pottery) -> None:
    """It is not delivered for ever: the refusal is in the log under its number, and the next message is taken."""
    async with pottery.running() as engine:
        await engine.send("tally", Envelope("tally", PutAway(), START_MS))
        await pottery.take(Lit())
        await pottery.hands.fires[0].report(Stoked())
        await pottery.hands.fires[0].report(Stoked())
        await pottery.quiet()
        assert [number for _, number, _ in await received(pottery)] == [1, 2]
    async with pottery.running():
        assert [number for _, number, _ in await received(pottery)] == [1, 2]
        assert pottery.counted == ()


async def test_a_post_is_taken_and_answered(pottery: Pottery) -> None:
    """What an operator leaves while the engine runs is an input, and its answer says what came of it."""
    async with pottery.running():
        taken = await pottery.store.submit("kiln/a", command_of(Lit()))
        refused = await pottery.store.submit("kiln/a", command_of(Lit()))
        await pottery.at(100)
        answers = {command.id: command.answer for command in await pottery.store.commands(unanswered=False)}
        assert answers[taken] == "accepted"
        assert str(answers[refused]).startswith("refused: kiln: Lit is not possible in Firing")
        assert await pottery.store.commands() == []
        assert pottery.entity.state is Heat.FIRING


async def test_an_operator_command_that_was_not_taken_waits_for_the_next_engine(pottery: Pottery) -> None:
    """What was left while no engine ran is taken by the next one, in order, once."""
    async with pottery.running():
        pass
    for word in ("one", "two", "three"):
        await pottery.store.submit("kiln/a", command_of(Called(word)))
    async with pottery.running():
        assert pottery.hands.words == ["one", "two", "three"]
        await pottery.at(1_000)
    async with pottery.running():
        await pottery.at(2_000)
        taken = [event.word for event in await pottery.events() if isinstance(event, Called)]
        assert taken == ["one", "two", "three"]
    assert [command.answer for command in await pottery.store.commands(unanswered=False)] == ["accepted"] * 3


async def test_a_post_is_answered_together_with_its_entry(pottery: Pottery) -> None:
    """One batch has both, so that a crash leaves the command answered and taken, or neither."""
    batches: list[Batch] = []

    async def keep(batch: Batch) -> None:
        batches.append(batch)

    async with pottery.running():
        pottery.store.before = keep
        number = await pottery.store.submit("kiln/a", command_of(Lit()))
        await pottery.at(100)
    (batch,) = (batch for batch in batches if batch.answers)
    assert dict(batch.answers) == {number: "accepted"}
    assert [entry.stream for entry in batch.entries] == ["kiln/a"]


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ("kiln/a", b"not json"),
        ("kiln/a", b"\xff\xfe"),
        ("kiln/a", b'{"entity":"kiln","event":{"type":"Melted"},"at_ms":1,"actor":"operator"}'),
        ("kiln/a", command_of(Lit(), ref="oven")),
        ("oven/a", command_of(Lit())),
        ("kiln/z", command_of(Lit())),
        ("", command_of(Lit())),
        ("kiln/a", command_of(Fired())),
    ],
    ids=["text", "bytes", "event", "entity", "aggregate", "nobody", "empty", "unsolicited"],
)
async def test_a_post_that_makes_no_sense_is_refused(pottery: Pottery, stream: str, said: bytes) -> None:
    """Whatever is left there gets an answer with the reason and does not stop the engine, nor the next one."""
    async with pottery.running():
        await pottery.store.submit(stream, said)
        await pottery.store.submit("kiln/a", command_of(Called("still here")))
        await pottery.at(100)
        answers = [str(command.answer) for command in await pottery.store.commands(unanswered=False)]
        assert answers[0].startswith("refused: ")
        assert answers[1] == "accepted"
        assert pottery.hands.words == ["still here"]


async def test_a_post_counts_from_when_it_is_taken(pottery: Pottery) -> None:
    """The clock of who left it does not matter: not to the log's time, and not to any timer."""
    async with pottery.running():
        await pottery.store.submit("kiln/a", command_of(Lit(), at_ms=START_MS + 10**9))
        await pottery.at(100)
        assert (await pottery.entries())[-1].at_ms == START_MS + 100
        assert pottery.entity.entered_ms == START_MS + 100


async def test_a_post_with_a_known_key_is_answered_and_not_taken_twice(pottery: Pottery) -> None:
    """An operator who is not sure whether a command was left may leave it again."""
    async with pottery.running():
        for _ in range(2):
            await pottery.store.submit("kiln/a", command_of(Called("once"), key="k1"))
        await pottery.at(100)
        answers = [str(command.answer) for command in await pottery.store.commands(unanswered=False)]
        assert answers[0] == "accepted"
        assert answers[1].startswith("refused: ")
        assert pottery.hands.words == ["once"]


async def test_effects_of_an_aggregate_are_performed_one_after_the_other(pottery: Pottery) -> None:
    """In the order of the log, each after the one before it has returned; other aggregates do not wait."""
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    said: list[str] = []
    go_on = anyio.Event()

    async def announce(effect: Announce, context: object) -> None:
        name = getattr(context, "within").name  # noqa: B009 - its type says nothing here
        running[name] += 1
        most[name] = max(most[name], running[name])
        if effect.word == "slow":
            await go_on.wait()
        said.append(effect.word)
        running[name] -= 1

    interpreter = Interpreter({Announce: announce}).over(pottery.hands.interpreter())
    async with pottery.running("a", "b", interpreter=interpreter):
        await pottery.take(Called("slow"), Called("a1"), Called("a2"))
        await pottery.take(Called("b1"), to="kiln/b")
        assert said == ["b1"]
        go_on.set()
        await pottery.quiet()
        assert said == ["b1", "slow", "a1", "a2"]
    assert max(most.values()) == 1


async def test_an_answer_comes_after_the_effects_were_let_go(pottery: Pottery) -> None:
    """A sender can rely on the answer: an accepted input is in the log, and a refused one is not."""
    async with pottery.running() as engine:
        accepted = await engine.send("kiln/a", Envelope("kiln", Lit(), START_MS))
        assert isinstance(accepted, Reaction)
        assert (await pottery.entries())[-1].version == accepted.aggregate.version
        refused = await engine.send("kiln/a", Envelope("kiln", Lit(), START_MS))
        assert isinstance(refused, Refusal)
        await pottery.take(Doused())
        assert [type(event).__name__ for event in await pottery.events()] == [
            "Opened",
            "Lit",
            "Doused",
            "ActivityEnded",
        ]
