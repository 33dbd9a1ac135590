"""A port of loopback that nothing uses, for a server that is started next."""

import socket


def free_port() -> int:
    """Return the number of a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
