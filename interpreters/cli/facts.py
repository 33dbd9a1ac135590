"""The report of a check for JSON: everything that the screen shows, as numbers."""

from typing import Any, Final

from lifefold.interpreters.check import Bounds, CrashReport, Report
from lifefold.interpreters.targets.check_targets import Target

_WIDE: Final = 10_000
"""The width of a line of a trace in JSON: no line is cut."""


def facts(target: Target, report: Report) -> dict[str, Any]:
    """Return a report for JSON: the size of the search, its bounds, each property, and the conclusion."""
    return {
        "target": target.name,
        "name": report.target,
        "ok": report.ok,
        "conclusion": report.conclusion(),
        "truncated": report.truncated,
        "states": report.states,
        "steps": report.steps,
        "depth": report.depth,
        "seconds": round(report.seconds, 3),
        "local_states": dict(report.components),
        "said": dict(report.said()),
        "bounds": _of_bounds(report.bounds),
        "led_out": report.cut,
        "refused": report.refused,
        "compared": {"states": report.walked[0], "depth": report.walked[1], "renumbered": list(report.renumbered)},
        "alike": None if report.alike is None else report.alike._asdict(),
        "coverage": {name: list(each) for name, each in report.coverage.items()},
        "missing": list(report.missing),
        "unused_rules": list(report.unused_rules),
        "crashes": None if report.crashes is None else _of_crashes(report.crashes),
        "properties": [
            {
                "owner": verdict.owner,
                "name": verdict.name,
                "kind": verdict.property_kind,
                "outcome": verdict.outcome,
                "note": verdict.note,
                "trace": None if verdict.trace is None else list(verdict.trace.lines(_WIDE)),
            }
            for verdict in report.verdicts
        ],
        "messages": [
            {
                "sender": message.sender,
                "receiver": message.receiver,
                "event": message.event,
                "why": message.why,
                "trace": list(message.way(_WIDE)),
            }
            for message in report.messages
        ],
    }


def _of_bounds(bounds: Bounds) -> dict[str, Any]:
    within = {name: getattr(holds, "__name__", str(holds)) for name, holds in bounds.within.items()}
    return {name: within if name == "within" else getattr(bounds, name) for name in bounds.__struct_fields__}


def _of_crashes(crashes: CrashReport) -> dict[str, Any]:
    limits = crashes.limits
    return {
        "said": crashes.extent(),
        "begun": crashes.begun,
        "inputs": limits.inputs,
        "crashes": limits.crashes,
        "batch": limits.batch,
        "truncated": crashes.truncated,
        "moments": crashes.states,
        "steps": crashes.steps,
        "depth": crashes.depth,
        "performed_again": crashes.again,
        "seconds": round(crashes.seconds, 3),
    }
