"""What the package offers to others."""

from lifefold.interpreters import body


def test_the_public_names_are_these() -> None:
    """A name is added or taken away on purpose."""
    assert sorted(body.__all__) == body.__all__
    assert set(body.__all__) == set(
        "LaunchError Outcome ProcessIdentity SessionError SessionExit SessionFileError SessionProcess SessionSpec "
        "SessionStart SessionUsage ShimUnresponsiveError Silence SurvivorsError adopt identify interrupt is_alive "
        "last_progress_ms launch output_tail read_exit read_start signal_group_if_ours signal_if_ours".split()
    )
    assert all(hasattr(body, name) for name in body.__all__)
