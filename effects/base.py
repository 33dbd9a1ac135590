"""What every effect and every activity is: a frozen record that can be written to a log and read back."""

from typing import ClassVar

import msgspec


class Effect(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A command as data, performed once per committed transition. A reducer returns it, an interpreter performs it.

    Whoever performs it may die before it is recorded, and then it is performed again, under the same identity. An
    effect is ``idempotent`` if that comes to the same as performing it once: it says what is to be the case, or it is
    news of which hearing it twice tells nothing more. What adds something each time is not, nor is what does something
    that we do not know. Such an effect is ``recognised`` if it is part of what it asks for that whoever performs it
    keeps its identity together with what is done, and passes over it when it comes again.
    """

    idempotent: ClassVar[bool] = False
    recognised: ClassVar[bool] = False


class Activity(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Work that goes on while a state holds; the kernel derives when it begins and when it ends.

    ``opaque`` names the texts and numbers that decide nothing but what is done in it.
    """

    opaque: ClassVar[tuple[str, ...]] = ()
