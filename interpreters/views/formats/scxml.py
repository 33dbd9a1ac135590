"""A machine as SCXML, the W3C's statechart language: https://www.w3.org/TR/scxml/.

Concepts without an element are written with other elements. An effect is raised as the internal event
``effect.StorePrompt``, for the host of the chart. A guard is a variable of the data model that the host sets, and so
is a computed duration (as a string with a unit: ``"2s"``). An activity is an invocation of ``urn:lifefold:activity``.
A timer is a delayed event, sent on entry and cancelled on exit.
"""

from typing import Any
from xml.etree import ElementTree as ET

from lifefold.core.kernel import Machine
from lifefold.interpreters.views.formats.chart import Arm, Node, Timer, chart

NAMESPACE = "http://www.w3.org/2005/07/scxml"
"""The namespace of all elements."""

ACTIVITY = "urn:lifefold:activity"
"""The type of an activity as a service."""


def scxml(machine: Machine[Any]) -> str:
    """Return the machine as an SCXML document."""
    drawn = chart(machine)
    root = ET.Element("scxml", xmlns=NAMESPACE, version="1.0", datamodel="ecmascript", name=drawn.name)
    root.set("initial", drawn.initial)
    if drawn.about:
        _say(root, drawn.about)
    names = (*drawn.guards, *drawn.delays)
    if names:
        data = ET.SubElement(root, "datamodel")
        _say(data, "set by the host: conditions, and durations")
        for name in names:
            ET.SubElement(data, "data", id=name)
    for node in drawn.nodes:
        _write(root, node)
    ET.indent(root, "  ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _write(parent: ET.Element, node: Node) -> None:
    """Write a node and its contents, in the order of the standard's examples."""
    element = ET.SubElement(parent, "final" if node.final else "state", id=node.id)
    if node.nodes:
        element.set("initial", node.initial)
    if node.title != node.id:
        _say(element, node.title)
    if node.postponed:
        _say(element, f"postponed to the next state: {', '.join(node.postponed)}")
    _write_timers(element, node.timers)
    for each in node.activities:
        _say(element, f"may yield {', '.join(each.yields) or 'nothing'}")
        ET.SubElement(element, "invoke", type=ACTIVITY, id=each.id, src=f"urn:lifefold:{each.activity}")
    for arm in node.arms:
        _write_arm(element, arm)
    for inner in node.nodes:
        _write(element, inner)


def _write_timers(element: ET.Element, timers: tuple[Timer, ...]) -> None:
    if not timers:
        return
    entry, leaving = ET.SubElement(element, "onentry"), ET.SubElement(element, "onexit")
    for timer in timers:
        delay = {"delayexpr": timer.delay} if isinstance(timer.delay, str) else {"delay": f"{timer.delay}ms"}
        ET.SubElement(entry, "send", {"id": timer.id, "event": timer.event, **delay})
        ET.SubElement(leaving, "cancel", sendid=timer.id)


def _write_arm(element: ET.Element, arm: Arm) -> None:
    attributes = {"event": arm.event, "cond": arm.guard, "target": arm.target}
    transition = ET.SubElement(element, "transition", {key: value for key, value in attributes.items() if value})
    for effect in arm.effects:
        ET.SubElement(transition, "raise", event=f"effect.{effect}")


def _say(element: ET.Element, text: str) -> None:
    """Add a comment; two hyphens in a row are not allowed in one."""
    element.append(ET.Comment(f" {text.replace('--', '- -')} "))
