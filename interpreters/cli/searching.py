"""Find a target by its name, and search it: what `check` does for a target, and for a certificate of it."""

from typing import TYPE_CHECKING

import msgspec

from lifefold.interpreters.cli.errors import BadInput

if TYPE_CHECKING:
    from lifefold.interpreters.check import Bounds, CrashBounds, Report
    from lifefold.interpreters.targets.target import Target


def named(name: str) -> "Target":
    """Return the target of a name. Raises ``BadInput``."""
    from lifefold.interpreters.targets import check_targets  # noqa: PLC0415 - needs an extra
    from lifefold.interpreters.targets.target import UnusableTarget  # noqa: PLC0415 - as above

    try:
        return check_targets.named(name)
    except UnusableTarget as error:
        raise BadInput(str(error)) from error


def searched(
    target: "Target", bounds: "Bounds", crashes: "CrashBounds | None", *, is_quiet: bool, shows_unused: bool = False
) -> "Report":
    """Search, print the report unless ``is_quiet``, and return it. Raises ``BadInput``."""
    from lifefold.interpreters.check import check  # noqa: PLC0415 - needs an extra
    from lifefold.interpreters.cli.reports import shown, tell  # noqa: PLC0415 - as above

    try:
        with shown(target.name) as progress:
            report = check(
                target.subject,
                opening=target.opening,
                begin=target.begin,
                bounds=bounds,
                crashes=crashes,
                tell=progress,
            )
        if not target.module:
            report = msgspec.structs.replace(report, target=target.name)
    except ValueError as error:
        raise BadInput(f"{target.name} cannot be checked: {error}") from error
    if not is_quiet:
        tell(report, shows_unused=shows_unused)
    return report
