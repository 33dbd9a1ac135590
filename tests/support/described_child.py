"""Ask a desk for what Schemathesis makes of its description: ``described_child.py BASE SECRET EXAMPLES PATH...``.

Standard input has the description.
Schemathesis replaces parts of Hypothesis when it is imported, so it runs in a process of its own.
"""

import json
import sys
from importlib import import_module
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings

schemathesis: Any = import_module("schemathesis")  # its annotations are incomplete
_checks: Any = import_module("schemathesis.specs.openapi.checks")
CHECKS: Final[list[Any]] = [
    import_module("schemathesis.checks").not_a_server_error,
    _checks.content_type_conformance,
    _checks.response_schema_conformance,
    _checks.status_code_conformance,
]
HEALTH: Final = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


def main(base: str, secret: str, examples: int, paths: list[str]) -> None:
    """Try so many requests that fit the description, for each path."""
    schema = schemathesis.openapi.from_dict(json.load(sys.stdin))
    schema.config.update(base_url=base)
    for path in paths:
        ask(schema, path, secret, examples)
    sys.stdout.write("done")


def ask(schema: Any, path: str, secret: str, examples: int) -> None:
    """Try so many requests for one path."""
    (found,) = schema.include(path=path).get_all_operations()
    headers = {"authorization": f"Bearer {secret}", "x-lifefold": "test"}

    @settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=HEALTH, phases=[Phase.generate]
    )
    @given(case=found.ok().as_strategy())
    def check(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    check()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
