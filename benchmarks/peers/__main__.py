"""Check that the peers are the same machine: ``python -m benchmarks.peers``. To measure: ``python -m benchmarks``."""

from benchmarks.peers.agreement import check

if __name__ == "__main__":
    check()
