"""What is found is shrunk: what remains is needed, all of it."""

from collections.abc import Mapping
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.campaign import shrunk
from lifefold.interpreters.simulate import Name

NAMES: list[Name] = [("choice", number) for number in range(12)]
DEVIATIONS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 50), min_size=1)


@given(DEVIATIONS, st.data())
def test_what_remains_is_what_is_needed(deviations: dict[Name, int], data: st.DataObject) -> None:
    """If some are needed, each with some size at least, these remain, each of that size."""
    needed = {
        name: data.draw(st.integers(1, deviations[name]))
        for name in data.draw(st.sets(st.sampled_from(sorted(deviations))))
    }

    def is_found(tried: Mapping[Name, int]) -> bool:
        return all(tried.get(name, 0) >= least for name, least in needed.items())

    assert shrunk(deviations, is_found) == needed


@given(DEVIATIONS, st.randoms(use_true_random=False))
def test_what_remains_is_found_whatever_the_rule_is(deviations: dict[Name, int], chance: Random) -> None:
    """Also if more can hide what fewer show: what remains is found, and without any one of it nothing is.

    Nothing is tried twice: each trial of a run is a simulation.
    """
    found: dict[tuple[tuple[Name, int], ...], bool] = {tuple(sorted(deviations.items())): True, (): False}
    asked = list[tuple[tuple[Name, int], ...]]()

    def is_found(tried: Mapping[Name, int]) -> bool:
        asked.append(tuple(sorted(tried.items())))
        return found.setdefault(asked[-1], chance.random() < 0.3)

    few = shrunk(deviations, is_found)
    assert len(asked) == len(set(asked))
    assert is_found(few)
    assert len(few) <= len(deviations)
    assert not any(is_found({each: way for each, way in few.items() if each != name}) for name in few)


def test_what_only_moves_others_to_their_occasion_is_left_out() -> None:
    """If something is found on the second occasion by itself, and on the third only after something else."""

    def is_found(tried: Mapping[Name, int]) -> bool:
        return ("operators", 2) in tried or {("slow store", 1, 1), ("operators", 3)} <= tried.keys()

    assert shrunk({("slow store", 1, 1): 1, ("operators", 3): 1}, is_found) == {("operators", 2): 1}


def test_what_happens_on_a_late_occasion_is_made_to_happen_early() -> None:
    """If it is found all the same: the ninth time of an activity, and the fortieth occasion, are the first."""
    late: dict[Name, int] = {
        ("fails", "a", "b", "Run", 9): 1,
        ("which end", "a", "b", "Run", 9): 2,
        ("operators", 40): 1,
        ("what", 40): 3,
        ("pause", 7): 5,
    }

    def is_found(tried: Mapping[Name, int]) -> bool:
        fails = {name[4] for name in tried if name[0] == "fails"}
        ends = {name[4] for name, way in tried.items() if name[0] == "which end" and way == 2}
        operators = {name[1] for name in tried if name[0] == "operators"}
        said = {name[1] for name, way in tried.items() if name[0] == "what" and way == 3}
        return bool(fails & ends) and bool(operators & said)

    assert set(shrunk(late, is_found)) == {
        ("fails", "a", "b", "Run", 1), ("which end", "a", "b", "Run", 1), ("operators", 1), ("what", 1),
    }  # fmt: skip
