"""When a watch looks, and what it says: in virtual time, with the evidence as a function of it."""

from collections.abc import Callable

import anyio
import trio.testing

from lifefold.core.fleet.worker.stall_detector import Limits, Silent, StallDetector, State, Stirred
from lifefold.core.kernel import Aggregate, Entity, Event, PersistentMap
from lifefold.effects import Begin, WatchOutput
from lifefold.interpreters.engine import ActivityContext, EffectContext
from lifefold.interpreters.fleet_runner.stall import watch

STEPS = (60_000, 90_000, 120_000)

Signs = Callable[[float], float | None]
"""When the session was last seen to move, of the time in seconds; None if that cannot be known."""


class Told(ActivityContext):
    """An activity that notes what is said of it, and when, in seconds. Nothing is refused unless it ``refuses``."""

    def __init__(self, state: State, *, refuses: int = 0) -> None:
        within = Aggregate(
            "worker/ann",
            entities=PersistentMap({"stall_detector": Entity("stall_detector", StallDetector(state, Limits(*STEPS)))}),
        )
        super().__init__(
            Begin("WatchOutput", WatchOutput(STEPS)), EffectContext(within, "stall_detector", 1, 0), cleanup_only=False
        )
        self.said: list[tuple[int, Event]] = []
        self._refuses = refuses

    async def report(self, event: Event) -> bool:
        self.said.append((round(anyio.current_time() - self.began_s), event))
        self._refuses -= 1
        return self._refuses < 0

    began_s = 0.0


def watching(
    signs: Signs, until_s: float, *, state: State = State.FRESH, on_step_ms: int = 0, refuses: int = 0
) -> tuple[list[tuple[int, Event]], int]:
    """Watch for so long; return what was said, with its second, and how often the evidence was looked at."""
    looks = 0
    told = Told(state, refuses=refuses)

    async def run() -> None:
        told.began_s = anyio.current_time()

        def lasts_ms() -> int | None:
            nonlocal looks
            looks += 1
            now_s = anyio.current_time() - told.began_s
            last_s = signs(now_s)
            return None if last_s is None else round((now_s - last_s) * 1_000)

        with anyio.move_on_after(until_s):
            await watch(lasts_ms, told, on_step_ms=on_step_ms)

    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(run, backend="trio", backend_options={"clock": clock})
    return told.said, looks


def steadily(now_s: float) -> float:
    """Move every twenty seconds."""
    return now_s // 20 * 20


def never(_now_s: float) -> float:
    """Move at the start, and not again."""
    return 0


def test_of_a_session_that_moves_nothing_is_said_and_it_is_looked_at_seldom() -> None:
    """A day of it costs the log nothing, and a look in the time of a warning."""
    said, looks = watching(steadily, 86_400)
    assert said == []
    assert looks <= 86_400 / 40 + 1


def test_silence_is_reported_at_each_step_and_then_no_more() -> None:
    """At its very second, with the silence that was found."""
    said, _looks = watching(never, 10_000)
    assert said == [(each // 1_000, Silent(each)) for each in STEPS]


def test_progress_on_the_ladder_is_reported_at_once() -> None:
    """Within a second; and the next silence has all of its steps."""
    said, _looks = watching(lambda now_s: 70 if now_s >= 70 else 0, 10_000)
    assert said[:2] == [(60, Silent(60_000)), (70, Stirred(10_000))]
    assert [event for _, event in said[2:]] == [Silent(each) for each in STEPS]
    assert [at_s for at_s, _ in said[2:]] == [130, 160, 190]


def test_an_answer_to_a_nudge_is_no_progress() -> None:
    """One that hangs on after it is ended when the nudge's time has passed again, and is nudged no second time."""
    said, _looks = watching(lambda now_s: 91 if now_s >= 91 else 0, 10_000)
    assert said == [(60, Silent(60_000)), (90, Silent(90_000)), (91, Stirred(1_000)), (121, Silent(30_000))]


def test_a_session_that_moves_after_its_answer_is_not_ended() -> None:
    """When it has moved for as long as the nudge has its time, it begins at the foot of the ladder."""
    said, _looks = watching(lambda now_s: 91 + (now_s - 91) // 10 * 10 if now_s >= 91 else 0, 10_000)
    assert said == [(60, Silent(60_000)), (90, Silent(90_000)), (91, Stirred(1_000)), (121, Stirred(30_000))]


def test_a_runner_that_comes_back_ends_no_session_before_its_time_to_answer() -> None:
    """Silent for an hour without a runner: each step lasts as long as the ladder says."""
    said, _looks = watching(lambda _now_s: -3_600, 10_000, on_step_ms=3_600_000)
    assert [at_s for at_s, _ in said] == [0, 30, 60]


def test_the_silence_before_a_watch_does_not_count() -> None:
    """The session has waited for an operator's answer for an hour: it is warned of a minute after the answer."""
    said, _looks = watching(lambda _now_s: -3_600, 10_000)
    assert [at_s for at_s, _ in said] == [60, 90, 120]


def test_a_step_keeps_its_time_when_a_runner_comes_back() -> None:
    """Of thirty seconds twenty are over: it is due in ten."""
    said, _looks = watching(lambda _now_s: -80, 10_000, state=State.WARNED, on_step_ms=20_000)
    assert said[0] == (10, Silent(90_000))


def test_a_session_that_moved_without_a_runner_is_not_ended() -> None:
    """However long ago the last step was taken: what counts is the evidence."""
    said, _looks = watching(lambda now_s: now_s - 5, 100, state=State.NUDGED, on_step_ms=3_600_000)
    assert said[0] == (0, Stirred(3_595_000))
    assert not [event for _, event in said if isinstance(event, Silent)]


def test_a_session_of_a_custom_interpreter_has_no_stall_report() -> None:
    """An interpreter of a user may run sessions in another way."""
    assert watching(lambda _now_s: None, 10_000)[0] == []


def test_what_is_refused_is_said_again_and_not_in_a_hurry() -> None:
    """A step counts when it was taken."""
    said, _looks = watching(never, 65, refuses=3)
    assert said == [(60, Silent(60_000)), (61, Silent(61_000)), (62, Silent(62_000)), (63, Silent(63_000))]
    said, _looks = watching(lambda now_s: now_s, 3.5, state=State.WARNED, refuses=2)
    assert [at_s for at_s, _ in said] == [0, 1, 2]
    assert all(isinstance(event, Stirred) for _, event in said)
