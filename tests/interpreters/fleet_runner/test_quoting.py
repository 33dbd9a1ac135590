"""Reports of handlers: no value of a secret is in one, whichever handler makes it."""

import pytest

from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate, Entity, Event, PersistentMap
from lifefold.core.lifecycles import session
from lifefold.effects import Begin, LogFatal, MergeWork
from lifefold.interpreters.engine import SKIP, ActivityContext, EffectContext, Interpreter
from lifefold.interpreters.fleet_runner.quoting import HiddenError, quoting, without
from lifefold.interpreters.fleet_runner.redaction import NO_SECRETS, Secrets
from lifefold.interpreters.store import StoreError

pytestmark = pytest.mark.anyio

SECRETS = Secrets([("A_KEY", "hunter22")])
MERGE = MergeWork("T1", 1, "title", 0)


class Kept(ActivityContext):
    """An activity that keeps what is reported of it."""

    def __init__(self) -> None:
        within = Aggregate(
            "worker/ann", entities=PersistentMap({"assignment": Entity("assignment", assignment.Assignment())})
        )
        super().__init__(
            Begin("MergeWork", MERGE, resumed=True), EffectContext(within, "assignment", 1, 0), cleanup_only=False
        )
        self.said: list[Event] = []

    async def report(self, event: Event) -> bool:
        self.said.append(event)
        return False


async def test_a_custom_handler_reports_no_secret_and_gets_its_activity_unchanged() -> None:
    """What the activity is, whether its end was asked for, and what its report is answered is passed on."""
    kept, seen = Kept(), list[object]()

    async def merge(activity: MergeWork, context: ActivityContext) -> None:
        kept.ending = True
        seen.append((activity, context.origin, context.resumed, context.cleanup_only, context.ending))
        seen.append(await context.report(assignment.Conflicted("cannot push to me:hunter22@host")))

    await quoting(Interpreter(activities={MergeWork: merge}), SECRETS).activities[MergeWork](MERGE, kept)
    assert seen == [(MERGE, kept.origin, True, False, True), False]
    assert kept.said == [assignment.Conflicted("cannot push to me:[redacted A_KEY]@host")]


async def test_an_error_of_a_handler_has_no_secret_and_its_policy_is_kept() -> None:
    """What a handler raises stands in the log, and what is declared for it holds in a fleet as elsewhere."""

    async def fatal(_effect: LogFatal, _occasion: EffectContext) -> None:
        raise OSError("me:hunter22@host refuses")

    async def plain(_effect: LogFatal, _occasion: EffectContext) -> None:
        raise OSError("the host refuses")

    async def stored(_effect: LogFatal, _occasion: EffectContext) -> None:
        raise StoreError("hunter22")

    origin = Kept().origin
    quoted = quoting(Interpreter({LogFatal: fatal}, on_error={LogFatal: SKIP}), SECRETS)
    assert quoted.on_error == {LogFatal: SKIP}
    with pytest.raises(HiddenError, match=r"^OSError: me:\[redacted A_KEY\]@host refuses$"):
        await quoted.effects[LogFatal](LogFatal("x"), origin)
    for handler, kind in ((plain, OSError), (stored, StoreError)):
        with pytest.raises(kind):
            await quoting(Interpreter({LogFatal: handler}), SECRETS).effects[LogFatal](LogFatal("x"), origin)


def test_every_text_of_an_event_is_hidden_and_the_rest_is_as_it_was() -> None:
    """However deep it is; what has none is itself."""
    told = session.SessionExited(session.Error("key hunter22 refused"), session.Usage(7, 8, 9))
    hidden = session.SessionExited(session.Error("key [redacted A_KEY] refused"), session.Usage(7, 8, 9))
    assert without(told, SECRETS) == hidden
    assert without(hidden, SECRETS) is hidden
    assert without(told, NO_SECRETS) is told
    assert without(("hunter22", ("x", 1), {"a": "hunter22"}), SECRETS) == (
        "[redacted A_KEY]",
        ("x", 1),
        {"a": "[redacted A_KEY]"},
    )
