"""The command ``schema``: prints the JSON Schema of fleet files."""

import json
from argparse import Namespace

from lifefold.interpreters.fleet_file.schema import json_schema


def schema(_arguments: Namespace) -> None:
    """Print the JSON Schema of a fleet file."""
    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
