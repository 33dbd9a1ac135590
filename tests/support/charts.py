"""What the tests of diagrams ask of a machine and of its chart."""

from collections.abc import Iterable, Iterator
from typing import Any

from lifefold.core.kernel import Event, Machine
from lifefold.interpreters.views.formats.chart import Node, chart


def examples(machine: Machine[Any]) -> Iterator[Event]:
    for event in machine.events:
        yield from event.examples()


def ids(machine: Machine[Any]) -> dict[str, str]:
    """Return the ids of the machine's states in a chart, by their names."""

    def leaves(nodes: Iterable[Node]) -> Iterator[tuple[str, str]]:
        for node in nodes:
            yield from leaves(node.nodes) if node.nodes else [(node.title, node.id)]

    return dict(leaves(chart(machine).nodes))


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from walk(node.nodes)
