"""The grammar of the commands that run a fleet on a Temporal server.

Like ``grammar`` it imports only the argument parser of the standard library.
"""

import argparse

from lifefold.interpreters.cli.grammar_parts import Commands, add_command, add_examples, log_option, natural, positive


def add_cluster(commands: Commands) -> None:
    """Add ``brain`` and ``host``."""
    brain = add_command(
        commands, "brain", "clustering:brain", "decide for a fleet on a Temporal server, until its tasks are settled"
    )
    _add_common(brain)
    brain.add_argument(
        "--place",
        metavar="AGENT=POOL",
        action="append",
        default=[],
        help="let the hosts of this pool run the agent; may be repeated (default: [cluster] of the fleet file)",
    )
    brain.add_argument("--watch", action="store_true", help="wait for tasks of lifefold task add until lifefold finish")
    add_examples(
        brain,
        ("brain fleet.toml --server 127.0.0.1:7233", "decide, with the namespace default"),
        ("brain fleet.toml --server temporal:7233/agents --place ann=gpu", "let ann run on hosts of the pool gpu"),
    )
    host = add_command(
        commands, "host", "clustering:host", "run sessions of a fleet for its brain; SIGTERM ends it after its work"
    )
    _add_common(host)
    host.add_argument("--name", metavar="NAME", default="", help="a name of its own (default: that of the machine)")
    host.add_argument(
        "--pool", metavar="NAME", action="append", help="take work of this pool; may be repeated (default: default)"
    )
    host.add_argument(
        "--capacity", metavar="N", type=positive, help="the number of agents at a time (default: that of its pools)"
    )
    host.add_argument(
        "--drain",
        metavar="SECONDS",
        type=natural,
        help="after SIGTERM: let sessions end for so long, then leave them (default: that of [cluster])",
    )
    add_examples(host, ("host fleet.toml --server 127.0.0.1:7233 --name one --capacity 4", "run at most four agents"))


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("fleet", metavar="FLEET.toml", help="the fleet file, the same for all processes")
    command.add_argument(
        "--server",
        metavar="HOST:PORT[/NAMESPACE]",
        help="the Temporal server, and its namespace (default: engine in [cluster] of the fleet file)",
    )
    command.set_defaults(named_by="--server")
    command.add_argument(
        "--detection",
        metavar="SECONDS",
        type=positive,
        help="a host without a heartbeat for so long is lost; the same for all processes (default: that of [cluster])",
    )
    command.add_argument("--tls", action="store_true", help="connect with TLS; with TEMPORAL_API_KEY that is so anyway")
    command.add_argument("--tls-ca", metavar="PATH", help="the certificate of the server's authority")
    command.add_argument("--tls-cert", metavar="PATH", help="the certificate of this client")
    command.add_argument("--tls-key", metavar="PATH", help="the key of this client")
    log_option(command, "the log (default: that of [cluster], or the latest .lifefold/NAME.db beside the fleet file)")
