"""How long to wait before the next try: exponential, capped, and, if asked for, spread without a random number."""

from hashlib import blake2b


def exponential_ms(n: int, *, base_ms: int, cap_ms: int) -> int:
    """Return ``min(base_ms * 2 ** (n - 1), cap_ms)`` for the n-th failure in a row (D5).

    It saturates instead of overflowing; before the first failure (n = 0) it is what it is for the first.
    """
    doublings = n - 1 if n > 1 else 0
    if base_ms and doublings >= cap_ms.bit_length():
        return cap_ms
    delay_ms = base_ms << doublings
    return min(cap_ms, delay_ms)


def spread_ms(delay_ms: int, fraction: float, *parts: str | int) -> int:
    """Shorten a delay by up to ``fraction`` of it (0 to 1), the same for the same ``parts`` on every machine (D27).

    ``parts`` name who waits and for which attempt, so that many who fail together do not come back together.
    """
    if not fraction:
        return delay_ms
    digest = blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return delay_ms - int(delay_ms * fraction * int.from_bytes(digest) / 2**64)
