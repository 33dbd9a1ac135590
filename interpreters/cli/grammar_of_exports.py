"""The grammar of exports and imports: a log or a machine in the formats of other programs."""

from lifefold.interpreters.cli.grammar_of_recorder import logs_argument
from lifefold.interpreters.cli.grammar_parts import Commands, add_command, add_examples, at_option


def add_copying(commands: Commands) -> None:
    """Add ``copy`` and ``move``."""
    log = "the log: a path, or postgresql://USER@HOST:PORT/DATABASE?log=NAME"
    copy = add_command(commands, "copy", "copying:copy", "copy a log between a file and a server; the copy is verified")
    copy.add_argument("origin", metavar="LOG", help=log)
    copy.add_argument("target", metavar="TO", help="the path or the address of the copy")
    add_examples(
        copy,
        ("copy .lifefold/fleet.db /backup/fleet.db", "into another file"),
        ("copy 'postgresql://me@db/agents?log=fleet' fleet.db", "a log of a server, to look at without it"),
    )
    move = add_command(
        commands, "move", "copying:move", "move the log of a fleet to a server, or back into a file; its path stays"
    )
    move.add_argument("origin", metavar="LOG", nargs="?", help=f"{log} (default: the one in .lifefold/)")
    move.add_argument("--to", metavar="ADDRESS|file", required=True, help="the address on the server, or the word file")
    add_examples(
        move,
        ("move --to 'postgresql://me@db/agents?log=fleet'", "the log of the fleet of this folder"),
        ("move --to file", "and back"),
    )


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
    add_copying(commands)
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
