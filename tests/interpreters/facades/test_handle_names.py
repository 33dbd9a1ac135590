"""The exports of the four facade packages: all that a caller needs, and no name that the documents do not have."""

import inspect
import re
import typing
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

PAGE: Final = (Path(__file__).parents[3] / "docs" / "handles.md").read_text()

EXPORTED: Final = {
    ("000", "cooperative"): """
        Agent AgentError AgentRetiredError AgentState HookError LifecycleEvent StateTransitionError
    """,
    ("001", "status"): """
        AgentBusy AgentConfig AgentError AgentFailed AgentState AlreadyRunning BudgetRefused LeaseState
        MemoryStateManager NotFound NotReserved NotRunning RefreshRefused Runtime SqliteStateManager State StateManager
        StoreError StoreUnavailable TaskRefused UnreadableState Verdict VersionConflict
    """,
    ("002", "process"): """
        ProcessLifecycle ProcessState ProcessTransition SnapshotError StateError
    """,
    ("004", "governance"): """
        AbortChain AbortPolicy AbortReason AbortScope AccessDeniedError AccessLevel AgentSession AgentState
        AgentStateThresholds AgentStatus AgentTurnEvent AgentTurnState AgentTurnStateMachine Claims
        DuplicateTransitionError Governance GraduatedAccess IllegalTransitionError LifecycleEvent PlanConflictError Task
        TaskStatus TimeoutEstimate TransitionReason TurnChange add_listener classify_agent_state estimate_timeout
        remove_listener transition_agent transition_task
    """,
}

HANDLES: Final = [pytest.param(*which, names.split(), id=which[1]) for which, names in EXPORTED.items()]


def package(name: str) -> ModuleType:
    """Return the package of a handle."""
    return import_module(f"lifefold.interpreters.facades.{name}")


def functions(of: Any) -> Iterator[Any]:
    """Yield what a caller can call: a function itself, the constructor and the public methods of a class."""
    if not inspect.isclass(of):
        yield of
        return
    for name in dir(of):
        found = inspect.getattr_static(of, name)
        function = getattr(found, "fget", getattr(found, "__func__", found))
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            yield function


def classes(hint: object) -> Iterator[type]:
    """Yield the classes in an annotation."""
    if isinstance(hint, type):
        yield hint
    for part in typing.cast("list[object]", hint) if isinstance(hint, list) else typing.get_args(hint):
        yield from classes(part)


def in_hand(of: Any, names: dict[str, Any]) -> set[type]:
    """Return the classes that stand in public signatures and fields."""
    annotated = [*functions(of), *([of] if inspect.isclass(of) else [])]
    hints = [hint for each in annotated for hint in typing.get_type_hints(each, localns=names).items()]
    return {found for name, hint in hints if not name.startswith("_") for found in classes(hint)}


@pytest.mark.parametrize(("document", "name", "names"), HANDLES)
def test_a_handle_exports_these_names_and_the_page_names_all_of_them(
    document: str, name: str, names: list[str]
) -> None:
    """Nothing by accident, nothing that is missing, and each in the section of its document."""
    assert package(name).__all__ == names
    (section,) = re.findall(rf"^## [^\n]*\(document {document}\)$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert [each for each in names if not re.search(rf"\b{each}\b", section)] == []
    assert [each for each in names if not inspect.getdoc(getattr(package(name), each))] == []


@pytest.mark.parametrize(("document", "name", "names"), HANDLES)
def test_what_a_caller_has_in_hand_is_exported_with_the_handle(document: str, name: str, names: list[str]) -> None:
    """Every class of the handles, and every enumeration to compare with; records and machines are the core's own."""
    del document
    known = {each: getattr(package(name), each) for each in names}
    held = set[type]().union(*(in_hand(each, known) for each in known.values())) - set(known.values())
    ours = {each for each in held if each.__module__.startswith("lifefold.")}
    assert {each for each in ours if each.__module__.startswith("lifefold.interpreters.")} == set()
    assert {each for each in ours if issubclass(each, Enum) and len(each)} == set()
