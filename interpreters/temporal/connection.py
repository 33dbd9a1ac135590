"""A connection to a Temporal server, and the way of an input to its aggregate."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateStage,
)
from temporalio.common import QueryRejectCondition, WorkflowIDConflictPolicy
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from lifefold.core.kernel import Envelope, encode
from lifefold.interpreters.temporal.converter import CONVERTER
from lifefold.interpreters.temporal.wire import TASK_TIMEOUT, Report, State, Times, aggregate_id, brain_queue, child_ids

WORKFLOW: Final = "lifefold-aggregate"
CHILD: Final = "lifefold-session"
OFFER: Final = "offer"
LOOK: Final = "look"
GONE: Final = "gone"
DECIDE: Final = "decide"
ASK: Final = timedelta(seconds=3)
"""How long a host waits for the answer of a workflow, which a brain gives. A placement may take longer."""


async def connect(
    address: str, namespace: str = "default", *, tls: TLSConfig | bool = False, api_key: str | None = None
) -> Client:
    """Connect to a server at ``HOST:PORT``. Raises ``RuntimeError`` if it cannot be reached."""
    return await Client.connect(
        address, namespace=namespace, tls=tls, api_key=api_key, data_converter=CONVERTER, runtime=_runtime()
    )


@cache
def _runtime() -> Runtime:
    """Return the runtime of this process. Its warnings would be printed among the lines of a display."""
    quiet = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=quiet)))


class Cluster:
    """One fleet on a Temporal server: gives inputs to its aggregates."""

    def __init__(self, client: Client, fleet: str, times: Times | None = None) -> None:
        """Use a client made by ``connect``. All processes of a fleet have the same ``times``."""
        self.client: Final = client
        self.fleet: Final = fleet
        self.times: Final = times or Times()

    def of_log(self, run: str) -> "Cluster":
        """Return the same fleet with one of its logs, which has this identity.

        Each log has workflows of its own: they know versions of that log.
        """
        return Cluster(self.client, f"{self.fleet}.{run}" if run else self.fleet, self.times)

    async def is_reached(self, within_ms: int) -> bool:
        """Tell whether the server answers within some milliseconds."""
        try:
            return await self.client.service_client.check_health(timeout=timedelta(milliseconds=within_ms))
        except RPCError:
            return False

    async def forget_brain(self, aggregates: Iterable[str]) -> int:
        """Let no workflow wait for an earlier brain, to which the server offers the next step of each for ``STICKY``.

        Return the number of these workflows. A server that does not answer is not waited for: a workflow that is left
        out waits for the earlier brain once.
        """
        count = 0
        with suppress(RPCError):
            for name in aggregates:
                count += await self._has_forgotten(aggregate_id(self.fleet, name))
            query = f'ExecutionStatus = "Running" AND WorkflowId STARTS_WITH "{child_ids(self.fleet)}"'
            async for each in self.client.list_workflows(query):
                count += await self._has_forgotten(each.id)
        return count

    async def _has_forgotten(self, workflow: str) -> bool:
        """Let a workflow forget its brain; return False if it has ended."""
        request = ResetStickyTaskQueueRequest(
            namespace=self.client.namespace, execution=WorkflowExecution(workflow_id=workflow)
        )
        try:
            await self.client.workflow_service.reset_sticky_task_queue(request)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False
        return True

    async def offer(self, aggregate: str, *envelopes: Envelope) -> None:
        """Give inputs to an aggregate, in order. Its workflow is started if there is none.

        A repeated input is dropped if its envelope has a key.
        """
        await self.signal(aggregate, OFFER, [encode(each).decode() for each in envelopes])

    async def look(self, aggregate: str) -> None:
        """Let the workflow of an aggregate take the operator commands that wait in the log."""
        await self.signal(aggregate, LOOK, [])

    async def signal(self, aggregate: str, signal: str, envelopes: list[str]) -> None:
        """Send a signal with inputs as JSON."""
        await self.client.start_workflow(
            WORKFLOW,
            State(self.fleet, aggregate, self.times),
            id=aggregate_id(self.fleet, aggregate),
            task_queue=brain_queue(self.fleet),
            task_timeout=TASK_TIMEOUT,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal=signal,
            start_signal_args=[envelopes],
        )

    async def decide(self, aggregate: str, envelope: Envelope, child: str = "") -> str:
        """Give an input with a key to an aggregate, and wait until it is decided.

        ``child`` is the child workflow for which a host reports. If that has ended, the answer is ``FENCED``. Return an
        empty text if the input is in the log, otherwise the reason of the refusal. A repetition with the same key has
        the same answer. Raises ``RPCError`` if the aggregate has no workflow.
        """
        handle = await self.handle(aggregate).start_update(  # pyright: ignore[reportUnknownMemberType] - an overload of the SDK
            DECIDE,
            Report(encode(envelope).decode(), child),
            wait_for_stage=WorkflowUpdateStage.COMPLETED,
            id=envelope.key,
            result_type=str,
        )
        reason: str = await handle.result()
        return reason

    async def is_at(self, aggregate: str, host: str) -> bool:
        """Tell whether an aggregate has this host, or may have it because nothing answers within ``ASK``."""
        not_open = QueryRejectCondition.NOT_OPEN
        try:
            state: State = await self.handle(aggregate).query(
                "state", result_type=State, reject_condition=not_open, rpc_timeout=ASK
            )
        except WorkflowQueryRejectedError:
            return False
        except WorkflowQueryFailedError:
            return True
        except RPCError as error:
            return error.status is not RPCStatusCode.NOT_FOUND
        return state.host == host

    def handle(self, aggregate: str) -> WorkflowHandle[object, object]:
        """Return the workflow of an aggregate."""
        return self.client.get_workflow_handle(aggregate_id(self.fleet, aggregate))


__all__ = ["CHILD", "DECIDE", "GONE", "LOOK", "OFFER", "WORKFLOW", "Cluster", "RPCError", "connect"]
