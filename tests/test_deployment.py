"""The systemd units of a cluster: their command lines exist, and a stop leaves sessions to their shims."""

import shlex
from pathlib import Path

import pytest

from lifefold.interpreters.cli.grammar import parser

UNITS = Path(__file__).parents[1] / "docs" / "deployment"


def settings(name: str) -> dict[str, str]:
    """Return the settings of a unit by name."""
    lines = (UNITS / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize(("unit", "command"), [("lifefold-brain.service", "brain"), ("lifefold-host@.service", "host")])
def test_the_command_line_of_a_unit_exists(unit: str, command: str) -> None:
    """The grammar of the command line accepts it."""
    _program, *arguments = shlex.split(settings(unit)["ExecStart"])
    assert arguments[0] == command
    assert parser().parse_args(arguments).fleet == "/srv/fleet/fleet.toml"


def test_a_stopped_host_may_drain_and_leaves_its_shims_alone() -> None:
    """The default of systemd would kill all processes of the unit."""
    unit = settings("lifefold-host@.service")
    drain_s = int(shlex.split(unit["ExecStart"])[-1])
    assert unit["KillMode"] == "process"
    assert int(unit["TimeoutStopSec"]) > drain_s


def test_a_fleet_that_is_over_is_not_started_again() -> None:
    """Only an abnormal end of a process is a reason for a restart."""
    assert settings("lifefold-brain.service")["Restart"] == "on-abnormal"
    assert settings("lifefold-host@.service")["Restart"] == "on-abnormal"
