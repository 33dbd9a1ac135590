"""The public names of the package."""

from lifefold.interpreters import processes


def test_the_public_names_are_these() -> None:
    """A name is added or taken away on purpose."""
    assert sorted(processes.__all__) == processes.__all__
    assert set(processes.__all__) == set(
        "Fence "
        "LaunchError Outcome ProcessIdentity SessionError SessionExit SessionFileError SessionProcess SessionSpec "
        "SessionStart SessionUsage ShimUnresponsiveError Silence SilentSince SurvivorsError adopt hold "
        "identify interrupt is_alive last_progress_ms launch output_pieces output_tail read_exit read_order read_start "
        "signal_group_if_ours signal_if_ours".split()
    )
    assert all(hasattr(processes, name) for name in processes.__all__)
