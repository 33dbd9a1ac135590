"""The receivers of facts beside the turn: a rule for each fact that another entity decides about.

A rule of this module takes one kind of fact of ``output`` and sends the event that its receiver understands. It asks
first whether the worker has the receiver.
"""

from typing import Final

from lifefold.core.kernel import Rule

RULES: Final[tuple[Rule, ...]] = ()
"""The rules, in their order. They come after the rules of the turn."""
