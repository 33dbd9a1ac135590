"""The command ``completion``: the script by which a shell completes the words of ``lifefold``."""

from argparse import Namespace

from argcomplete.shell_integration import shellcode


def completion(arguments: Namespace) -> None:
    """Print the script; a shell evaluates it at its start."""
    print(shellcode(["lifefold"], shell=arguments.shell))
