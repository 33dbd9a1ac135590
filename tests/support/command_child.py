"""The command line as forks of one process, which has loaded what the commands need: most of a short command is that.

Standard input is a socket. A packet is JSON, ``[folder, *arguments]``, and brings where to write standard output and
standard error; what is sent back is the exit code. A command is as when the program is started by itself, but that its
process does not tidy up its memory in the end.
"""

import gc
import json
import os
import pkgutil
import socket
import sys
from importlib import import_module
from typing import Final

import anyio
import anyio.lowlevel

from lifefold.interpreters.cli import app, commands

MOST_BYTES: Final = 60_000
"""How long a packet may be."""


def main() -> int:
    """Fork for every packet, as nobody's child; return, in the fork, what the command returns, and else 0."""
    if os.fork():
        os._exit(0)
    for each in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        import_module(each.name)
    anyio.run(anyio.lowlevel.checkpoint)
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as asked:
        while True:
            packet, (*outputs,), _, _ = socket.recv_fds(asked, MOST_BYTES, 2)
            if not packet:
                return 0
            pid = os.fork()
            if pid == 0:
                break
            for each_output in outputs:
                os.close(each_output)
            asked.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    folder, *arguments = json.loads(packet)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for place, descriptor in enumerate((nothing, *outputs)):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(folder)
    code = app.main(arguments)
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
