"""The text of a fleet file with one agent and one task, for tests of what surrounds a fleet."""

from typing import Final

SMALL_FLEET: Final = """
[fleet]
name = "demo"
[[agents]]
name = "ann"
command = ["true"]
[[tasks]]
id = "t"
prompt = "x"
"""
