"""Kilns on the real engine in a simulation: a small system with messages, timers, activities and effects."""

from functools import partial
from typing import Any, Final

import kiln
from lifefold.interpreters.engine import Engine
from lifefold.interpreters.simulate import Environment, Faults, Limits, Run, hours, simulate
from lifefold.interpreters.simulate.engine_runner import EngineRunner
from lifefold.interpreters.targets.target import Target

ENVIRONMENT: Final = Environment(
    durations_ms={kiln.Fire: (500, 5_000)},
    operators_ms=(100, 2_000),
    restart_ms=(10, 2_000),
    keen=(kiln.Lit, kiln.Called, kiln.Doused),
)
LIMITS: Final = Limits(until_ms=hours(0.02))
OFTEN: Final = Faults({"killed between awaits": 0.002, "slow handler": 0.3, "stopped": 0.02}, swarm=False)
"""All faults in every run: a mistake shows within a few seeds."""

TARGET: Final = Target("pottery", kiln.system, opening=tuple(kiln.opened(0, "a", "b")), environment=ENVIRONMENT)


def pottery(engine: type[Engine] = Engine, **named: Any) -> Run:
    """Simulate the kilns on an engine."""
    return simulate(
        kiln.system,
        opening=TARGET.opening,
        environment=ENVIRONMENT,
        limits=LIMITS,
        runner=partial(EngineRunner, engine=engine),
        **named,
    )
