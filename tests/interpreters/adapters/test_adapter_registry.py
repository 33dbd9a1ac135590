"""Adapters are found by name, also those of other distributions."""

import sys
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from lifefold.interpreters.adapters import AdapterError, adapter_names, adapter_of, is_adapter, registry
from lifefold.interpreters.adapters.command import Command


class Acme(Command):
    """An adapter of another distribution."""

    name = "acme"


def broken() -> Acme:
    """Fail."""
    raise RuntimeError("no licence")


HERE = "test_adapter_registry"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer entry points, as installed distributions do."""
    values = {"acme": "Acme", "claude": "Acme", "broken": "broken", "wrong": "HERE.upper", "two": "Acme"}
    found = [EntryPoint(name, f"{HERE}:{value}", registry.GROUP) for name, value in values.items()]
    found.append(EntryPoint("two", f"{HERE}:broken", registry.GROUP))

    def entry_points(**selected: Any) -> EntryPoints:
        return EntryPoints(found).select(**selected)

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


def test_the_adapters_of_lifefold_are_found_by_their_names() -> None:
    assert adapter_names()[:6] == ("claude", "codex", "opencode", "gemini", "aider", "command")
    assert [adapter_of(name).name for name in registry.SHIPPED] == list(registry.SHIPPED)


@pytest.mark.usefixtures("installed")
def test_an_adapter_of_another_distribution_is_found_by_its_entry_point() -> None:
    assert adapter_of("acme").name == "acme"
    assert "acme" in adapter_names()


@pytest.mark.usefixtures("installed")
def test_no_distribution_takes_the_name_of_an_adapter_of_lifefold() -> None:
    assert adapter_of("claude") is registry.SHIPPED["claude"]
    assert adapter_names().count("claude") == 1


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acmee", 'there is no adapter acmee; accepted: .*acme.*; did you mean "acme"?'),
        (
            "broken",
            r"the adapter broken \(test_adapter_registry:broken\) cannot be loaded: RuntimeError\('no licence'\)",
        ),
        ("wrong", r"the adapter wrong \(test_adapter_registry:HERE.upper\) has no name, initial"),
        ("two", "two names several adapters: test_adapter_registry:Acme, test_adapter_registry:broken"),
    ],
)
def test_an_adapter_that_cannot_be_used_is_an_error_that_says_why(name: str, message: str) -> None:
    with pytest.raises(AdapterError, match=message):
        adapter_of(name)


def test_an_adapter_of_lifefold_is_known_without_a_search_of_the_installed_distributions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search reads the metadata of every distribution; a fleet file has many keys that depend on the kind."""
    monkeypatch.setattr(registry, "_installed", lambda: pytest.fail("the distributions were searched"))
    assert all(map(is_adapter, registry.SHIPPED))
    assert adapter_of("claude").name == "claude"


@pytest.mark.usefixtures("installed")
def test_an_adapter_of_another_distribution_is_known() -> None:
    assert is_adapter("acme")
    assert not is_adapter("acmee")
