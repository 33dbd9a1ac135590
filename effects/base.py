"""The base of every effect and every activity: a frozen record that can be written to a log and read back."""

from typing import ClassVar

import msgspec


class Effect(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A command as data, performed once per committed transition. A reducer returns it, an interpreter performs it.

    An interpreter may die between performing an effect and recording that. Then the effect is performed again, under
    the same identity. An effect is ``idempotent`` if twice comes to the same as once: it sets a value, or it is news
    that a second report does not change. An effect that adds something is not idempotent, nor is an unknown one. Such
    an effect is ``recognised`` if its interpreter must keep its identity with the result, and skip a repetition.

    >>> from lifefold import Effect
    >>> class Ring(Effect, frozen=True):
    ...     idempotent = True
    ...     floor: int
    >>> Ring(2)
    Ring(floor=2)
    """

    idempotent: ClassVar[bool] = False
    recognised: ClassVar[bool] = False


class Activity(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Work that lasts while a state lasts; the kernel derives its beginning and its end.

    ``opaque`` names the texts and numbers that decide nothing but the content of the work.

    >>> from lifefold import Activity
    >>> class Bake(Activity, frozen=True):
    ...     degrees: int
    >>> Bake(220)
    Bake(degrees=220)
    """

    opaque: ClassVar[tuple[str, ...]] = ()
