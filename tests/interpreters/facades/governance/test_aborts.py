"""Document 004's abort chain through its own interface."""

import random
from typing import Any, Final

import pytest

from lifefold.core.policy.abort import AbortPolicy
from lifefold.interpreters.facades.governance import AbortChain, AbortReason, AgentSession


def family(policy: AbortPolicy = AbortPolicy(), told: list[Any] | None = None) -> AbortChain:  # noqa: B008 - immutable
    """Return a chain in which root has a and b, a has a1, and b has b1."""
    heard: list[Any] = [] if told is None else told

    def shut_down(session: str, because: AbortReason, reason: str) -> None:
        heard.append((session, because, reason))

    chain = AbortChain(policy, shut_down)
    for parent, child in (("root", "a"), ("root", "b"), ("a", "a1"), ("b", "b1")):
        chain.register_child(parent, child)
    return chain


def test_by_default_a_tools_abort_affects_no_session() -> None:
    """Document 004, "Abort Chain Hierarchy": TOOL, no cascade."""
    assert family().abort_tool("a", "Bash", "exit 1") == []


def test_siblings_are_told_to_shut_down_and_the_parent_is_not() -> None:
    """Document 004, "Abort Chain Hierarchy": SIBLING, with all that is below them (E36)."""
    told: list[Any] = []
    assert family(told=told).abort_siblings("a", "broken") == ["b", "b1"]
    assert told == [("b", AbortReason.SIBLING_ABORTED, "broken"), ("b1", AbortReason.PARENT_ABORTED, "broken")]


def test_the_earliest_spawned_session_is_called_first() -> None:
    """In every process; a family without one of its members keeps its order."""
    chain = AbortChain()
    names = [f"s{number}" for number in range(50)]
    for name in names:
        chain.register_child("root", name)
    assert chain.propagate_abort("root") == names
    chain.cleanup("s7")
    assert chain.propagate_abort("root") == [name for name in names if name != "s7"]


def test_an_abort_of_a_session_reaches_all_descendants() -> None:
    """Document 004, "Abort Chain Hierarchy": SESSION, by propagate_abort(); with itself by abort_session (E36)."""
    chain = family()
    assert sorted(chain.propagate_abort("root")) == ["a", "a1", "b", "b1"]
    assert sorted(chain.abort_session("root")) == ["a", "a1", "b", "b1", "root"]
    assert chain.propagate_abort("a1") == []


def test_escalation_is_opt_in() -> None:
    """Document 004, "Abort Chain Hierarchy": AbortPolicy (E37)."""
    assert sorted(family(AbortPolicy(tool_to_sibling=True)).abort_tool("a", "Bash")) == ["b", "b1"]
    everything = AbortPolicy(tool_to_sibling=True, sibling_to_session=True)
    told: list[Any] = []
    chain = family(everything, told)
    assert sorted(chain.abort_tool("a", "Bash", "exit 1")) == ["a", "a1", "b", "b1", "root"]
    assert told[0] == ("root", AbortReason.SIBLING_ABORTED, "Bash: exit 1")
    assert family(AbortPolicy(sibling_to_session=True)).abort_tool("a", "Bash") == []


def test_a_spawned_session_is_in_the_chain_by_itself() -> None:
    """It needs no registration (E38)."""
    chain = AbortChain()
    AgentSession("root", aborts=chain)
    AgentSession("child", parent_id="root", aborts=chain)
    AgentSession("alone", parent_id="root")
    assert chain.propagate_abort("root") == chain.children_of("root") == ["child"]


def test_the_first_word_about_a_parent_counts() -> None:
    """A family does not change under one's feet."""
    chain = family()
    chain.register_child("b", "a1")
    assert chain.propagate_abort("b") == ["b1"]


def test_a_cleaned_up_session_is_forgotten() -> None:
    """As a child and as a parent."""
    chain = family()
    chain.cleanup("a")
    chain.cleanup("nobody")
    assert chain.propagate_abort("a") == []
    assert sorted(chain.propagate_abort("root")) == ["b", "b1"]


def test_one_that_cannot_be_told_does_not_spare_the_others() -> None:
    """The error is kept; cascades do not stop halfway (tomcounsell/ai#1113)."""
    told: list[str] = []

    def shut_down(session: str, _because: AbortReason, _reason: str) -> None:
        told.append(session)
        raise OSError(session)

    chain = AbortChain(shutdown=shut_down)
    for child in ("a", "b", "c"):
        chain.register_child("root", child)
    assert sorted(chain.propagate_abort("root")) == sorted(told) == ["a", "b", "c"]
    assert len(chain.failures) == 3


ODD: Final[list[Any]] = [None, 0, "", "a", "b", "root", "\ud800", object(), AbortReason.OOM]


def test_ten_thousand_calls_with_odd_arguments_raise_nothing_undocumented() -> None:
    """In every family, also with cycles, no session is named twice; the seed is fixed."""
    chance = random.Random(3)  # noqa: S311 - a fixed seed
    chain = AbortChain(AbortPolicy(tool_to_sibling=True, sibling_to_session=True))
    calls = [chain.register_child, chain.abort_tool, chain.abort_siblings, chain.propagate_abort, chain.abort_session]
    for _ in range(10_000):
        call: Any = chance.choice(calls)
        try:
            found = call(chance.choice(ODD), chance.choice(ODD))
        except (TypeError, ValueError):
            continue
        assert found is None or len(found) == len(set(found))
        if chance.random() < 0.1:
            chain.cleanup(chance.choice(["a", "b", "root"]))


def test_a_policy_a_cause_and_a_shutdown_have_their_types() -> None:
    """Whatever else is refused where it is given."""
    odd: Any = 5
    with pytest.raises(TypeError, match="expected AbortPolicy"):
        AbortChain(odd)
    with pytest.raises(TypeError, match="shutdown must be callable"):
        AbortChain(shutdown=odd)
    with pytest.raises(ValueError, match=r"cause must be one of user_interrupt, .*, not 5"):
        family().abort_session("a", cause=odd)


@pytest.mark.parametrize("name", [None, 5, b"a"])
def test_a_session_is_named_by_a_text(name: Any) -> None:
    """Everywhere."""
    chain = family()
    with pytest.raises(TypeError, match="must be a str"):
        chain.register_child("root", name)
    for call in (
        chain.abort_tool, chain.abort_siblings, chain.propagate_abort, chain.abort_session, chain.cleanup,
        chain.children_of,
    ):  # fmt: skip
        with pytest.raises(TypeError, match="must be a str"):
            call(name)


def test_a_session_has_a_name() -> None:
    """An empty one would make strangers a family."""
    chain = family()
    for name, call in (
        ("parent_id", lambda: chain.register_child("", "a")),
        ("child_id", lambda: chain.register_child("root", "")),
        ("session_id", lambda: chain.abort_session("")),
        ("session_id", lambda: chain.cleanup("")),
        ("parent_id", lambda: chain.propagate_abort("")),
    ):
        with pytest.raises(ValueError, match=f"{name} must not be empty"):
            call()


@pytest.mark.parametrize("tool", [None, 0, False, b"", []])
def test_a_tool_is_named_by_a_text(tool: Any) -> None:
    """Also one that says nothing: only an empty text is no name."""
    with pytest.raises(TypeError, match="tool must be a str"):
        family().abort_tool("a", tool)
