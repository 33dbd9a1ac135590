"""The version of the rules of a system: a short digest of the code that decides."""

from lifefold.interpreters.rules.version import rules_version

__all__ = ["rules_version"]
