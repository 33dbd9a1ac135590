"""Durations and sizes as operators write them: texts of numbers with units."""

import re

DURATION_FORM = 'a duration as text, such as "500ms", "5s", "30m", "2h" or "1h30m"'
SIZE_FORM = 'a size as text, such as "500kB", "10MB" or "1GiB"'

LONGEST_MS = 365 * 24 * 3_600_000
"""The longest duration that is accepted: a year, because a longer one is probably a typing error."""

LARGEST_BYTES = 1 << 40
"""The largest size that is accepted: 1 TiB."""

_DURATION_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_DURATION = re.compile("".join(f"(?:([0-9]{{1,12}}){unit})?" for unit in _DURATION_UNITS_MS))
DURATION_PATTERN = f"^(?=.){_DURATION.pattern}$"
"""The pattern of durations in the JSON Schema, without bounds."""

_SIZE_UNITS = {
    "GiB": 1 << 30,
    "GB": 10**9,
    "MiB": 1 << 20,
    "MB": 10**6,
    "KiB": 1 << 10,
    "kB": 1_000,
    "KB": 1000,
    "B": 1,
}
_SIZE = re.compile(f"([0-9]{{1,13}})({'|'.join(_SIZE_UNITS)})")
SIZE_PATTERN = f"^{_SIZE.pattern}$"
"""The pattern of sizes in the JSON Schema, without bounds."""


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of a text such as ``1h30m``; the largest unit comes first.

    Raises ``ValueError`` for another text, or for more than a year.
    """
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise _refused(text, DURATION_FORM)
    counts = (int(digits or 0) for digits in match.groups())
    duration_ms = sum(n * unit_ms for n, unit_ms in zip(counts, _DURATION_UNITS_MS.values(), strict=True))
    if duration_ms > LONGEST_MS:
        raise _refused(text, f"{DURATION_FORM}, of at most a year")
    return duration_ms


def format_duration(duration_ms: int) -> str:
    """Return the shortest text for a duration; ``0s`` for 0."""
    text = ""
    for unit, unit_ms in _DURATION_UNITS_MS.items():
        n, duration_ms = divmod(duration_ms, unit_ms)
        text += f"{n}{unit}" if n else ""
    return text or "0s"


def parse_size_bytes(text: str) -> int:
    """Return the bytes of a text such as ``10MB`` (millions) or ``10MiB`` (times 1024 * 1024).

    Raises ``ValueError`` for another text, or for more than 1 TiB.
    """
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _SIZE_UNITS[match[2]] if match else LARGEST_BYTES + 1
    if size > LARGEST_BYTES:
        raise _refused(text, SIZE_FORM)
    return size


def format_size(size_bytes: int) -> str:
    """Return the text for a size, in the largest unit without a remainder."""
    unit = next(unit for unit, factor in _SIZE_UNITS.items() if size_bytes % factor == 0) if size_bytes else "B"
    return f"{size_bytes // _SIZE_UNITS[unit]}{unit}"


def _refused(text: str, form: str) -> ValueError:
    return ValueError(f"found {text[:40]!r}; accepted: {form}")
