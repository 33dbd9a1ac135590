"""The agent's session lifecycle in three other libraries, each in the style of its own documentation."""

from types import ModuleType

from benchmarks.peers import automat_session, statemachine_session, transitions_session

PEERS: dict[str, ModuleType] = {
    "transitions": transitions_session,
    "python-statemachine": statemachine_session,
    "automat": automat_session,
}
"""The peers, by the name of the installed package."""
