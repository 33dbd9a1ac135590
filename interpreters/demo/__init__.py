"""The files that ``lifefold demo`` and ``lifefold init`` write: fleet file, scripted agent, and the demo's project."""

from lifefold.interpreters.demo.project import ScaffoldError, Written, write_demo, write_init

__all__ = ["ScaffoldError", "Written", "write_demo", "write_init"]
