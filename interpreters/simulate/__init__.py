"""``simulate``: a whole system in virtual time, under faults that a seed draws.

A deterministic interpreter without an event loop. Every random decision is a named choice (``choices``). Faults have
names and rates (``faults``). The conduct of activities is derived from the machines (``environment``). A runner
decides, persists, performs and records, and may crash at any point (``runner``). Properties are checked after every
step (``property_monitor``). The package ``campaign`` tries many seeds, and shrinks what they find.

``on_engine`` runs the same processes with the real engine. It needs an event loop, and is imported by itself.
"""

from lifefold.interpreters.simulate.choices import Choices, Name
from lifefold.interpreters.simulate.environment import Environment, Said, Script
from lifefold.interpreters.simulate.faults import NONE, SHIPPED, Fault, Faults
from lifefold.interpreters.simulate.inputs import Counts
from lifefold.interpreters.simulate.simulation import Found, Limits, Run, hours, simulate

__all__ = [
    "NONE",
    "SHIPPED",
    "Choices",
    "Counts",
    "Environment",
    "Fault",
    "Faults",
    "Found",
    "Limits",
    "Name",
    "Run",
    "Said",
    "Script",
    "hours",
    "simulate",
]
