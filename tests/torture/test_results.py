"""The page on reliability has the kept results, and each campaign keeps and continues its own."""

from results_page import PAGES, with_results
from trials import FOLDER, Result, Verdict, kept

NAMES = {name for names in PAGES.values() for name in names}


def test_the_pages_have_the_kept_results() -> None:
    for file, names in PAGES.items():
        page = file.read_text()
        assert page == with_results(page, map(kept, names))
    assert {file.stem for file in FOLDER.glob("*.json")} <= NAMES


def test_no_kept_trial_found_something_wrong() -> None:
    assert [each for name in NAMES for each in kept(name).wrong] == []


def test_a_result_counts_trials_by_point_and_keeps_what_is_wrong() -> None:
    result = Result("some")
    result.take(Verdict("here", (), {"kills": 1}), 0.5)
    result.take(Verdict("there", ("it is torn",), {"kills": 2}), 0.5)
    result.take(Verdict("here"), 0.5)
    assert (result.trials, result.points, result.counted) == (3, {"here": 2, "there": 1}, {"kills": 3})
    assert result.wrong == ["trial 1, there: it is torn"]
