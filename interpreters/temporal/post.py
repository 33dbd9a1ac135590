"""The messages of aggregates on their way to the workflows of others."""

from typing import Final

from temporalio import activity

from lifefold.interpreters.temporal.connection import OFFER, Cluster
from lifefold.interpreters.temporal.wire import Told


class Post:
    """Sends the messages of one aggregate to the workflows of others."""

    def __init__(self, cluster: Cluster) -> None:
        """Send through this cluster."""
        self._cluster: Final = cluster

    @activity.defn(name="lifefold-deliver")
    async def deliver(self, messages: tuple[Told, ...]) -> None:
        """Send messages in their order. The kernel drops the doubles of a repeated try."""
        by_receiver: dict[str, list[str]] = {}
        for each in messages:
            by_receiver.setdefault(each.receiver, []).append(each.envelope)
        for receiver, envelopes in by_receiver.items():
            await self._cluster.signal(receiver, OFFER, envelopes)
