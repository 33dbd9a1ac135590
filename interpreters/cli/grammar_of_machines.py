"""The grammar of the commands for lifecycles and systems: to show, check and simulate them."""

from typing import Final

from lifefold.interpreters.cli.grammar_parts import KNOWN, Commands, add_command, hours, natural, positive


def add_showing(commands: Commands) -> None:
    """Add the commands that list and draw machines."""
    machines = add_command(commands, "machines", "showing:machines", "list the known lifecycles and systems")
    machines.add_argument("--json", action="store_true", help="print JSON")
    table = add_command(commands, "table", "showing:table", "print the transition table of a lifecycle")
    table.add_argument("machine", metavar="MACHINE", help=KNOWN)
    table.add_argument(
        "--format",
        choices=("plain", "markdown", "json"),
        default="plain",
        help="json has the transitions only; the others have activities, timers and special states, too",
    )
    diagram = add_command(
        commands,
        "diagram",
        "showing:diagram",
        "print the diagram of a lifecycle, or of a system: its machines, rules and messages",
    )
    diagram.add_argument("machine", metavar="MACHINE", help=KNOWN)
    diagram.add_argument("--format", choices=("mermaid", "dot", "svg", "scxml", "xstate"), default="mermaid")


def add_simulate(commands: Commands) -> None:
    """Add ``simulate``."""
    simulate = add_command(
        commands, "simulate", "simulating:simulate", "run a system in virtual time, with faults chosen by a seed"
    )
    simulate.add_argument("target", metavar="TARGET", help=KNOWN)
    simulate.add_argument("--seeds", metavar="N", type=positive, help="the number of seeds (default: 100)")
    simulate.add_argument("--seed", metavar="S", type=natural, help="the first seed; without --seeds, the only one")
    simulate.add_argument("--jobs", metavar="J", type=positive, default=1, help="the number of processes")
    simulate.add_argument(
        "--hours", metavar="H", type=hours, default=24, help="virtual hours under faults, as 6 or 0.5 (default: 24)"
    )
    simulate.add_argument(
        "--fault", metavar="NAME=RATE", action="append", help="the rate of a fault; or none for no faults"
    )
    simulate.add_argument("--all-faults", action="store_true", help="use all faults in every run, not some")
    simulate.add_argument(
        "--engine", action="store_true", help="simulate the real engine, with crashes between any two of its awaits"
    )
    simulate.add_argument(
        "--cluster", action="store_true", help="simulate a brain and three hosts, which die, freeze and are cut off"
    )
    simulate.add_argument("--emit-test", metavar="FILE", help="write the failures as a test file for pytest")
    simulate.add_argument("--itf", metavar="FILE", help=_ITF)
    simulate.add_argument(
        "--soak",
        metavar="FOLDER",
        help="go on until stopped, from the last seed of FOLDER; keeps every seed that fails there",
    )
    simulate.add_argument("--unused", action="store_true", help=_UNUSED)
    simulate.add_argument("--json", action="store_true", help="print JSON")


_ITF: Final = "write the traces of broken properties in the Informal Trace Format, one a file"
_UNUSED: Final = "print all rows that were never taken and all rules that never answered"


def add_check(commands: Commands) -> None:
    """Add ``check``."""
    check = add_command(
        commands,
        "check",
        "checking:check",
        "search every reachable state of a lifecycle or a system, and check its properties",
    )
    about = f"{KNOWN}; or MODULE:SYSTEM LOG, from the state in which a log has left its system"
    check.add_argument("targets", metavar="TARGET", nargs="*", help=about)
    check.add_argument("--states", metavar="N", type=positive, help="the most states to search")
    check.add_argument("--depth", metavar="N", type=positive, help="the most steps from the initial state")
    check.add_argument("--seconds", metavar="S", type=positive, help="the longest time of the search, in seconds")
    check.add_argument("--memory", metavar="MIB", type=positive, help="the most memory to use, in MiB")
    check.add_argument("--commands", metavar="N", type=natural, help="the most commands of operators in a trace")
    check.add_argument(
        "--symmetry",
        action="store_true",
        default=None,
        help="treat states as one if only the names of equal aggregates differ",
    )
    check.add_argument("--accept-truncated", action="store_true", help="accept a search that a limit has ended")
    check.add_argument("--certificate", metavar="PATH", help="the file or folder of the certificate")
    check.add_argument("--verify", action="store_true", help="check whether the certificate holds for this code")
    check.add_argument("--search", action="store_true", help="with --verify: search again, even if nothing has changed")
    check.add_argument("--emit-test", metavar="FILE", help="write the broken properties as a test file for pytest")
    check.add_argument("--itf", metavar="FILE", help=_ITF)
    check.add_argument("--unused", action="store_true", help=_UNUSED)
    check.add_argument("--json", action="store_true", help="print JSON")
