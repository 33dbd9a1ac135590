"""The interface of document 002: ``ProcessLifecycle``, with a history that cannot be rewritten."""

from lifefold.interpreters.facades.process.history import ProcessState, ProcessTransition, SnapshotError
from lifefold.interpreters.facades.process.lifecycle import ProcessLifecycle, StateError

__all__ = ["ProcessLifecycle", "ProcessState", "ProcessTransition", "SnapshotError", "StateError"]
