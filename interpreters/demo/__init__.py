"""What ``lifefold demo`` and ``lifefold init`` write: a fleet file, a scripted agent, and for the demo a project."""

from lifefold.interpreters.demo.project import ScaffoldError, Written, write_demo, write_init

__all__ = ["ScaffoldError", "Written", "write_demo", "write_init"]
