"""``simulate``: whole systems in virtual time, under faults that a seed draws; a failing seed shrunk.

A deterministic interpreter without an event loop. Everything that chance decides is a named choice (``choices``), what
goes wrong has a name and a rate (``faults``), what activities do is read off the machines (``environment``). A runner
decides, persists, performs and records, and dies at any point of it (``runner``); what is promised is asked at every
step (``monitor``). ``campaign`` tries many seeds, ``shrink`` finds the few deviations that matter.

``enacted`` acts the same processes out for the real engine. It needs an event loop, and is imported by itself.
"""

from lifefold.interpreters.simulate.campaign import Tally, campaign
from lifefold.interpreters.simulate.choices import Choices, Name
from lifefold.interpreters.simulate.environment import Environment, Said, Script
from lifefold.interpreters.simulate.faults import NONE, SHIPPED, Fault, Faults
from lifefold.interpreters.simulate.inputs import Counts, Entry
from lifefold.interpreters.simulate.shrink import shrunk
from lifefold.interpreters.simulate.simulation import Found, Limits, Run, hours, simulate

__all__ = [
    "NONE",
    "SHIPPED",
    "Choices",
    "Counts",
    "Entry",
    "Environment",
    "Fault",
    "Faults",
    "Found",
    "Limits",
    "Name",
    "Run",
    "Said",
    "Script",
    "Tally",
    "campaign",
    "hours",
    "shrunk",
    "simulate",
]
