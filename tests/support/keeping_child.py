"""A process that keeps a SQLite file for itself, ready to write, until a line comes: its argument is the file."""

import sqlite3
import sys


def main(path: str) -> None:
    """Keep the file, say so, let it go when a line comes, say that too."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    print("kept", flush=True)  # noqa: T201 - what the parent reads
    sys.stdin.readline()
    connection.execute("ROLLBACK")
    connection.close()
    print("free", flush=True)  # noqa: T201 - what the parent reads


if __name__ == "__main__":
    main(sys.argv[1])
