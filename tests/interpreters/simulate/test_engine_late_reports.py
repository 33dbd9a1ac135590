"""A simulated process is over when its last report is in the log, also if a late copy alone has brought it there."""

from soak import SoakCampaign


def test_a_late_copy_of_a_last_report_ends_its_process() -> None:
    """The engine stops between the report and its entry. Later its copy is logged, and the next checkout may begin."""
    assert SoakCampaign().attempt(3).wrong == ()
