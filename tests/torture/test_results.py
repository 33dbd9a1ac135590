"""The page on reliability has the kept results, and each campaign keeps and continues its own."""

from pathlib import Path

from fuzz import FuzzCampaign
from results_page import BEGIN, END, MOMENTS, PAGES, with_results
from trials import FOLDER, Result, Verdict, go_on, kept

NAMES = {name for names in PAGES.values() for name in names}


def test_the_pages_have_the_kept_results() -> None:
    for file, names in PAGES.items():
        page = file.read_text()
        assert page == with_results(page, map(kept, names))
    assert {file.stem for file in FOLDER.glob("*.json")} <= NAMES


def test_no_kept_trial_found_something_wrong() -> None:
    assert [each for name in NAMES for each in kept(name).wrong] == []


def test_several_processes_make_the_trials_of_one(tmp_path: Path) -> None:
    """In the same order: a trial's number decides on its chance."""
    of_one, of_two = (go_on(FuzzCampaign(), 19, tmp_path / str(jobs), jobs) for jobs in (1, 2))
    assert (of_two.trials, of_two.points, of_two.counted) == (19, of_one.points, of_one.counted)
    assert kept("fuzz", tmp_path / "2").counted == of_one.counted


def test_the_memory_of_a_campaign_is_kept_now_and_then_and_shown_in_few_moments() -> None:
    result = Result("soak")
    for _ in range(305):
        result.take(Verdict("fleet", resident_mib=50 + result.trials), 1.0)
    assert list(result.resident_mib) == list(range(10, 305, 10))
    page = with_results(f"a\n{BEGIN}{END}b\n", [result, Result("kills", trials=3)])
    lines = [line for line in page.splitlines() if line.startswith("| soak | ") and line.count("|") == 4]
    assert lines[0] == "| soak | 10 | 59 |"
    assert lines[-1] == "| soak | 300 | 349 |"
    assert 5 < len(lines) <= MOMENTS + 1


def test_a_result_counts_trials_by_point_and_keeps_what_is_wrong() -> None:
    result = Result("some")
    result.take(Verdict("here", (), {"kills": 1}), 0.5)
    result.take(Verdict("there", ("it is torn",), {"kills": 2}), 0.5)
    result.take(Verdict("here"), 0.5)
    assert (result.trials, result.points, result.counted) == (3, {"here": 2, "there": 1}, {"kills": 3})
    assert result.wrong == ["trial 1, there: it is torn"]
