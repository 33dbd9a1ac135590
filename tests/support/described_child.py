"""Ask a desk for what Schemathesis makes of its description: ``described_child.py BASE SECRET EXAMPLES PATH...``.

Standard input has the description.
Schemathesis replaces parts of Hypothesis when it is imported, so it runs in a process of its own.
"""

import json
import sys
from importlib import import_module
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings

HEALTH: Final = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


def main(base: str, secret: str, examples: int, paths: list[str]) -> None:
    """Try so many requests that fit the description, for each path."""
    schema = _imported("schemathesis").openapi.from_dict(json.load(sys.stdin))
    schema.config.update(base_url=base)
    for path in paths:
        ask(schema, path, secret, examples)
    sys.stdout.write("done")


def ask(schema: Any, path: str, secret: str, examples: int) -> None:
    """Try so many requests for one path."""
    (found,) = schema.include(path=path).get_all_operations()
    headers = {"authorization": f"Bearer {secret}", "x-lifefold": "test"}
    conformance = _imported("schemathesis.specs.openapi.checks")
    checks = [
        _imported("schemathesis.checks").not_a_server_error,
        conformance.content_type_conformance,
        conformance.response_schema_conformance,
        conformance.status_code_conformance,
    ]

    @settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=HEALTH, phases=[Phase.generate]
    )
    @given(case=found.ok().as_strategy())
    def check(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=checks)

    check()


def _imported(name: str) -> Any:
    """Return a module, whose annotations are incomplete; a process that only reads this file does not import it."""
    return import_module(name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
