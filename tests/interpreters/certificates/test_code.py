"""The modules of a certificate: all that could change its result."""

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from lifefold.interpreters import views
from lifefold.interpreters.certificates.code import checker, code_of
from lifefold.interpreters.rules.syntax import digest_of
from lifefold.interpreters.targets.check_targets import named


def makers(is_meant: Callable[[Any], bool]) -> set[str]:
    """Return the modules of the core that such a thing has its first name in: not those that import it."""
    ours = {name: module for name, module in sys.modules.items() if name.startswith("lifefold.core.")}
    return {
        name
        for name, module in ours.items()
        for word, thing in vars(module).items()
        if is_meant(thing) and re.search(rf"(?m)^{word}(: .+)? = ", inspect.getsource(module))
    }


@pytest.mark.parametrize("name", [*views.machines(), *views.systems()])
def test_the_module_that_a_table_stands_in_is_always_among_them(name: str) -> None:
    """Also if nothing else stands there: a line that is taken out of it is another table."""
    shipped: Any = views.machines().get(name) or views.systems()[name]
    found = makers(lambda each: each is shipped)
    found = found or makers(lambda each: type(each) is type(shipped) and each.rows is shipped.rows)
    assert found
    assert found <= code_of(named(name)).keys()


def test_the_module_of_a_system_is_among_them_also_if_more_is_declared_of_it() -> None:
    """A configuration may have properties of its own."""
    assert "lifefold.core.fleet" in code_of(named("fleet-orphans"))


TEXT = "X = 1\n\n\ndef f(a: int) -> int:\n    return a + 1\n"
SAME = [
    '"""About it."""\n' + TEXT,
    TEXT.replace("    return", '    """Add one."""\n    # why\n    return'),
    TEXT.replace("X = 1", 'X = 1\n"""What it is."""').replace("a + 1", "(a\n        + 1)"),
]
OTHER = [TEXT.replace("a + 1", "a + 2"), TEXT.replace("a + 1", "a - 1"), TEXT.replace("X = 1", 'X = "1"'), ""]


@pytest.mark.parametrize("text", SAME)
def test_prose_and_layout_change_no_digest(text: str) -> None:
    """Of a module, a function, an attribute; comments and brackets."""
    assert digest_of(text) == digest_of(TEXT)


@pytest.mark.parametrize("text", OTHER)
def test_whatever_decides_changes_the_digest(text: str) -> None:
    """An operator, a constant, the type of a constant, a function less."""
    assert digest_of(text) != digest_of(TEXT)


def test_the_checker_is_known_by_its_search_and_not_by_what_it_checks() -> None:
    """Its own modules count, and those of the core count with the target."""
    assert checker() == checker()
    assert not any("interpreters" in name for name in code_of(named("turn")))


def test_a_module_that_only_imports_a_machine_is_not_in_its_certificate() -> None:
    """The profiles of a session have names for it, and are none of its code."""
    assert "lifefold.core.lifecycles.session_profiles" not in code_of(named("session"))
    assert "lifefold.core.lifecycles.session_windowed" in code_of(named("session-windowed"))
