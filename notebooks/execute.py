"""Executes the notebooks and writes what they show into them; with --check, compares and writes nothing.

What is kept of an output is what anybody else would get: no times of execution, no widgets of one kernel. The pixels of
a picture depend on the fonts of a machine, so the SVG beside them is compared. The processor time has a limit.
"""

import argparse
import json
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
FORMAT: Any = nbformat  # which says nothing of its types
TIMEOUT_S = 120
BUSY_S = 60
"""The most processor time of a notebook, its kernel included. It does not depend on what else a machine does."""
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
QUIET = ["--IPKernelApp.log_level=40"]
"""The kernel need not say that it listens on a port of this machine, as kernels do."""
ELSE = "shows something else; `make notebooks` writes it anew"
ALIVE = ("application/vnd.jupyter.widget-view+json",)
SVG, PNG = "image/svg+xml", "image/png"
COLOURS = re.compile(r"\x1b\[[\d;]*m")
TOOK = re.compile(
    r"\bin \d[\d,.]* s\b|\([\d,]+ states/s\)"
    r"|\d[\d,.]* s of work, [\d,]+ inputs/s, [\d,]+ times the clock"
    r"|\b[\d,]+ times as fast as the clock"
)
"""How long a check or a simulation took, which is another number every time."""


def executed(path: Path) -> Any:
    """Return a notebook as it is after all its cells have run in order."""
    notebook = FORMAT.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        resources={"metadata": {"path": str(FOLDER)}},
        allow_errors=True,
        coalesce_streams=True,  # else what is printed comes in as many pieces as it happens to
        extra_arguments=QUIET,
    ).execute()
    return cleaned(notebook)


def cleaned(notebook: Any) -> Any:
    """Return a notebook without what belongs to one execution of it."""
    notebook.metadata = {"language_info": {"name": "python"}, "kernelspec": KERNEL}
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).clear()
            for kind in ALIVE:
                output.get("data", {}).pop(kind, None)
    return notebook


def errors(notebook: Any) -> Iterator[str]:
    """Yield what has gone wrong in a notebook, as Python says it."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                yield COLOURS.sub("", "\n".join(output.traceback))
            elif output.get("name") == "stderr":
                yield COLOURS.sub("", output.text)


def shown(notebook: Any) -> str:
    """Return what a notebook shows, cell by cell, without how long anything took."""
    outputs = json.loads(json.dumps([cell.get("outputs") for cell in notebook.cells]))
    for bundle in bundles(outputs):
        if SVG in bundle and PNG in bundle:
            bundle[PNG] = "of the same picture"
    return TOOK.sub("…", json.dumps(outputs, indent=1, sort_keys=True, ensure_ascii=False))


def bundles(outputs: Any) -> Iterator[dict[str, Any]]:
    """Yield the forms of each value that the outputs of cells show."""
    for every in outputs:
        yield from (output["data"] for output in every or () if "data" in output)


def busy_s() -> float:
    """Return the processor time of the kernels that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Execute the notebooks that are named, or all; return 1 if one fails, or shows something else than is in it."""
    parser = argparse.ArgumentParser(description="Execute the notebooks.")
    parser.add_argument("names", nargs="*", help="notebooks, all if none is named")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    arguments = parser.parse_args()
    paths = [FOLDER / name for name in arguments.names] or sorted(FOLDER.glob("*.ipynb"))
    return max([_done(path, check=arguments.check) for path in paths], default=1)


def _done(path: Path, *, check: bool) -> int:
    begin_s = busy_s()
    notebook, before = executed(path), FORMAT.read(path, as_version=4)
    took_s = busy_s() - begin_s
    wrong = "\n".join(errors(notebook))
    if wrong:
        print(f"{path.name}: a cell has failed\n{wrong}")
        return 1
    same = shown(notebook) == shown(before)
    if not check and not same:
        FORMAT.write(notebook, path)
    print(f"{path.name}: {'as it was' if same else ELSE if check else 'written'}, {took_s:.0f} s of processor time")
    if took_s > BUSY_S:
        print(f"{path.name}: at most {BUSY_S} s are accepted; let it simulate or check less")
    return int(took_s > BUSY_S or (check and not same))


if __name__ == "__main__":
    sys.exit(main())
