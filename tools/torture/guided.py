"""One reader with inputs that follow its branches: ``guided.py READER RUNS``, with atheris.

The first inputs are the valid ones of ``fuzz``. The program ends with an error at the first finding.
"""

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

atheris: Any = import_module("atheris")

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

with atheris.instrument_imports(include=["lifefold.interpreters", "lifefold.core.kernel"]):
    from fuzz import readers, tried


class Found(Exception):
    """A reader has raised an error that it does not document."""


def main(name: str, runs: int) -> None:
    """Read inputs; the last call ends the process."""
    reader = readers()[name]

    def one(text: bytes) -> None:
        if wrong := tried(reader, text):
            raise Found(wrong)

    folder = tempfile.mkdtemp(prefix="lifefold-guided-")
    for number, text in enumerate(reader.inputs):
        (Path(folder) / str(number)).write_bytes(text)
    atheris.Setup([sys.argv[0], f"-runs={runs}", "-max_len=20000", "-verbosity=0", folder], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
