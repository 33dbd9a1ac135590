"""The grammar of exports and imports: a log or a machine in the formats of other programs."""

from lifefold.interpreters.cli.grammar_of_recorder import logs_argument
from lifefold.interpreters.cli.grammar_parts import Commands, add_command, add_examples, at_option


def add_exports(commands: Commands) -> None:
    """Add ``export`` and ``import``."""
    export = add_command(
        commands, "export", "exporting:export", "write a log as traces and metrics of OpenTelemetry, or as an ITF trace"
    )
    export.add_argument("format", metavar="FORMAT", choices=("otel", "itf"), help="otel or itf")
    logs_argument(export)
    at_option(export)
    export.add_argument(
        "--to",
        metavar="FILE|URL",
        help="the file, or with otel the address of a collector, as http://localhost:4318 (default: standard output)",
    )
    export.add_argument(
        "--follow", action="store_true", help="with otel: go on with new entries until Ctrl-C or the end of the fleet"
    )
    add_examples(
        export,
        ("export otel --to fleet.otlp.jsonl", "spans and metrics of the fleet of this folder"),
        ("export otel --to http://localhost:4318 --follow", "to a collector, while the fleet runs"),
        ("export itf --to fleet.itf.json --at 200", "the states until entry 200"),
        ("export otel door:system door.db", "a system of your own"),
    )
    imported = add_command(
        commands, "import", "importing:import_", "write a Python module to complete from a machine of another program"
    )
    imported.add_argument("format", metavar="FORMAT", choices=("xstate",), help="xstate")
    imported.add_argument("file", metavar="FILE", help="the configuration of an XState machine (version 5) as JSON")
    imported.add_argument("--to", metavar="FILE", help="the module (default: standard output)")
    add_examples(
        imported,
        ("import xstate door.json --to door.py", "states, events and rows; guards and actions to fill in"),
        ("check door:machine", "then: what the completed module can reach"),
    )
