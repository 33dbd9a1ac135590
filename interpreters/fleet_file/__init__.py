"""Fleet files: reading, validation, the commands of sessions, and the difference of two files."""

from lifefold.interpreters.fleet_file.command import expand
from lifefold.interpreters.fleet_file.loading import load, load_text
from lifefold.interpreters.fleet_file.meaning import describe_difference, in_force
from lifefold.interpreters.fleet_file.model import Agent, Fleet, InterpreterEntry, Service
from lifefold.interpreters.fleet_file.problems import FleetFileError, Problem, place_of
from lifefold.interpreters.fleet_file.restoring import former_text
from lifefold.interpreters.units import format_duration, format_size, parse_duration_ms, parse_size_bytes

__all__ = [
    "Agent",
    "Fleet",
    "FleetFileError",
    "InterpreterEntry",
    "Problem",
    "Service",
    "describe_difference",
    "expand",
    "format_duration",
    "format_size",
    "former_text",
    "in_force",
    "load",
    "load_text",
    "parse_duration_ms",
    "parse_size_bytes",
    "place_of",
]
