"""Run the real agent programs against a model service on loopback, and record what they print.

``python tools/recordings/record.py PROGRAM [CASE...] --into FOLDER`` needs lifefold, and the program: ``make agents``
installs it. The command lines are those of the adapters. Each program has a home of its own, and no network but
loopback. The recordings of tests/data/adapters were made so; its README says of which versions.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from cases import CASES
from homes import ROOT
from sessions import Sandbox


def without_places(output: bytes, folder: Path) -> bytes:
    """Return an output without the folders of this machine and the ports of services."""
    for place in (folder, ROOT):
        output = output.replace(str(place).encode(), b"")
    return re.sub(rb"127\.0\.0\.1:\d+", b"127.0.0.1:1", output)


def main() -> None:
    """Record the chosen cases, and note their exit statuses in ``statuses.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=sorted(CASES))
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    into = options.into / options.program
    into.mkdir(parents=True, exist_ok=True)
    known = into / "statuses.json"
    statuses: dict[str, int] = json.loads(known.read_text()) if known.exists() else {}
    cases = CASES[options.program]
    chosen = {*options.cases} or {*cases}
    chosen |= {cases[name].after for name in chosen}
    conversations: dict[str, str] = {"": ""}
    with TemporaryDirectory() as place:
        sandbox = Sandbox(options.program, Path(place))
        for name, case in cases.items():
            if name not in chosen:
                continue
            session = sandbox.session(case, conversations[case.after])
            conversations[name] = session.conversation
            sys.stderr.write(f"{options.program} {name}: status {session.status}, {session.requests} requests\n")
            (into / f"{name}.txt").write_bytes(without_places(session.output, Path(place)))
            statuses[name] = session.status
    known.write_text(json.dumps(dict(sorted(statuses.items())), indent=2) + "\n")


if __name__ == "__main__":
    main()
