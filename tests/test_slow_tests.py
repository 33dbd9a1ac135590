"""``tests/slow.txt`` lists tests that exist, a run names slow tests that are not there, and long tests have shares."""

import ast
import sys
from pathlib import Path

import pytest

from case_share import SHARED, CaseShare
from commands_run import run_command, start_command
from processor_time import counted_s, processor_s
from slow_tests import ALWAYS, LIST, NAMED_S, ROOT, SLOW_S, SlowTests, unlisted

pytest_plugins = ("pytester",)

HANG_S = 500
"""Longer than any command here takes on any machine."""


@pytest.fixture(autouse=True)
def _only_our_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load no plugin of a library in a run within this process: Schemathesis would replace parts of Hypothesis."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


LINES = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]


def test_the_list_is_in_order_and_names_each_function_once() -> None:
    assert sorted(set(LINES)) == LINES


@pytest.mark.parametrize("file", sorted({line.partition("::")[0] for line in LINES}))
def test_each_listed_function_or_its_class_is_in_its_file(file: str) -> None:
    """A class may inherit its tests from a kit. A test that is renamed is renamed in the list, too."""
    program = ast.walk(ast.parse((ROOT / file).read_text()))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    named = {
        each.name if isinstance(each, kinds) else each.id for each in program if isinstance(each, (*kinds, ast.Name))
    }
    assert {line.split("::")[1] for line in LINES if line.startswith(f"{file}::")} - named == set()


def test_only_functions_over_the_limit_that_are_not_listed_are_named() -> None:
    """The slowest case of a function counts."""
    seconds = {"a.py::test_a[1]": 9.0, "a.py::test_b[1]": 0.1, "a.py::test_b[2]": NAMED_S + 1, "a.py::test_c": SLOW_S}
    seconds["tests/torture/test_disk.py::test_b"] = 9.0
    assert unlisted(seconds, frozenset({"a.py::test_a"})) == [f"{NAMED_S + 1:.1f} s  a.py::test_b"]


def test_the_short_forms_of_campaigns_of_disturbance_run_always() -> None:
    assert [line for line in LINES if line.startswith(ALWAYS)] == []


def test_a_run_marks_listed_functions_and_names_others_over_the_limit(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    slow\n    cluster\n")
    pytester.makepyfile(
        test_here="""
        import pytest

        def test_listed(): pass

        def test_not_listed(): pass

        @pytest.mark.cluster
        def test_server(): pass
        """
    )
    known = frozenset({"test_here.py::test_listed"})
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider", plugins=[SlowTests(known, limit_s=-1.0)])
    run.assert_outcomes(passed=3)
    run.stdout.fnmatch_lines(
        ["*over -1.0 s of processor time, and not in tests/slow.txt*", "0.0 s  test_here.py::test_not_listed"]
    )
    run.stdout.no_fnmatch_line("*s  test_here.py::test_listed")
    run.stdout.no_fnmatch_line("*s  test_here.py::test_server")
    run = pytester.runpytest_inprocess("-m", "not slow", plugins=[SlowTests(known)])
    run.assert_outcomes(passed=2, deselected=1)
    assert "schemathesis" not in sys.modules


@pytest.mark.parametrize("marker", SHARED)
def test_a_share_has_the_first_case_of_each_function_and_each_fourth_after_it(
    pytester: pytest.Pytester, marker: str
) -> None:
    """Whatever has another marker is run as always."""
    pytester.makeini("[pytest]\nmarkers =\n    campaign\n    slow\n")
    pytester.makepyfile(
        test_here=f"""
        import pytest

        @pytest.mark.{marker}
        @pytest.mark.parametrize("case", range(9))
        def test_long(case):
            assert case in (0, 4, 8)

        @pytest.mark.{marker}
        def test_alone(): pass

        @pytest.mark.parametrize("case", range(3))
        def test_always(case): pass
        """
    )
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider", plugins=[CaseShare(marker, 4)])
    run.assert_outcomes(passed=3 + 1 + 3, deselected=6)


def test_the_processor_time_includes_processes_that_have_ended(pytester: pytest.Pytester) -> None:
    """Here a program that uses 0.2 s."""
    before = processor_s()
    pytester.runpython(pytester.makepyfile("import time\nwhile time.process_time() < 0.2: pass"))
    assert processor_s() - before >= 0.2


def test_a_command_in_a_fork_counts_as_time_of_its_test(tmp_path: Path) -> None:
    """The fork is no child of this process. It counts when it has run to its end, or was begun and waited for."""
    before_s = counted_s()
    assert run_command(tmp_path, "machines", timeout_s=HANG_S).returncode == 0
    between_s = counted_s()
    assert between_s > before_s
    with start_command(tmp_path, "machines") as begun:
        assert begun.stdout is not None
        assert begun.stdout.read()
    assert counted_s() > between_s
