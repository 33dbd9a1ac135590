"""The delay before the next try: exponential, capped, and optionally spread without a random number."""

from hashlib import blake2b


def exponential_ms(n: int, *, base_ms: int, cap_ms: int) -> int:
    """Return ``min(base_ms * 2 ** (n - 1), cap_ms)`` for the n-th failure in a row (D5).

    The result saturates instead of overflowing. Before the first failure (n = 0) it is the delay of the first.
    """
    doublings = n - 1 if n > 1 else 0
    if base_ms and doublings >= cap_ms.bit_length():
        return cap_ms
    delay_ms = base_ms << doublings
    return min(cap_ms, delay_ms)


def spread_ms(delay_ms: int, fraction: float, *parts: str | int) -> int:
    """Shorten a delay by up to ``fraction`` of it (0 to 1), the same for the same ``parts`` on every machine (D27).

    ``parts`` name the waiting entity and its attempt, so that entities that fail together do not all retry together.
    """
    if not fraction:
        return delay_ms
    digest = blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return delay_ms - int(delay_ms * fraction * int.from_bytes(digest) / 2**64)
