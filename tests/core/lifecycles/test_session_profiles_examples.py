"""The examples of events fit the session that a check gives them to."""

from lifefold.core.lifecycles.session import SessionExited
from lifefold.core.lifecycles.session_profiles import SupervisedSession


def test_only_a_session_that_takes_messages_may_have_taken_some_at_its_end() -> None:
    """So a fleet without steering has no such ends, and its check is no larger."""
    without = SessionExited.examples_for(SupervisedSession())
    steered = SessionExited.examples_for(SupervisedSession(steers=True))
    assert {each.messages for each in without} == {0}
    assert {each.messages for each in steered} == {0, 1, 2}
