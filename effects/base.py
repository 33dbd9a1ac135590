"""What every effect and every activity is: a frozen record that can be written to a log and read back."""

import msgspec


class Effect(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A command as data, performed once per committed transition. A reducer returns it, an interpreter performs it."""


class Activity(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Work that goes on while a state holds; the kernel derives when it begins and when it ends."""
