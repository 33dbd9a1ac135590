"""Logs on a PostgreSQL server: the store, and the address of a log."""

from lifefold.interpreters.store.address import Address, read_address
from lifefold.interpreters.store.errors import NotThere, OutcomeUnknown, Unreachable
from lifefold.interpreters.store.postgres.connection import Timings
from lifefold.interpreters.store.postgres.store import PostgresStore

__all__ = ["Address", "NotThere", "OutcomeUnknown", "PostgresStore", "Timings", "Unreachable", "read_address"]
