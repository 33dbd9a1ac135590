"""Entries for the tests of stores, as the conformance kit writes them."""

from lifefold.interpreters.testing.stores import entry

__all__ = ["entry"]
