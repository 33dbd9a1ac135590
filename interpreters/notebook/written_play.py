"""A play as the text of a test: it gives the same inputs again, and asserts states, effects and records."""

import sys
from collections.abc import Iterator
from typing import Any, Final

from lifefold.core.kernel import Machine, System
from lifefold.interpreters.certificates.source import Names, Unwritable
from lifefold.interpreters.notebook.play import Play
from lifefold.interpreters.report.emitted_file import docstring

_OWN: Final = "__main__"
_REPLAY: Final = """
    for number, (given, states, effects) in enumerate(played, 1):
        stepped = world.step(given)
        assert isinstance(stepped, tuple), f"input {number} is refused: {stepped!r}"
        world, step = stepped
        assert tuple((each.entity, str(each.after.state)) for each in step.reaction.transitions) == states, number
        assert tuple(each.effect for each in step.reaction.effects) == effects, number
"""


def as_test(play: Play, *, source: str = "", name: str = "") -> str:
    """Return a test in Python that plays the path to the present world.

    ``source`` is the ``module:attribute`` of the machine or system; without it, a loaded module is looked up. The types
    of a notebook are imported from that module. Raises ``Unwritable`` for a value without an expression.
    """
    module, _, attribute = (source or _found(play.subject)).partition(":")
    names = Names("play", "played", "world", "stepped", "step", "given", "states", "effects", "number", "each")
    body = "\n".join(_body(play, names, names.of(module, attribute)))
    imports = (line.replace(f"from {_OWN} ", f"from {module} ") for line in names.lines())
    title = f"test_{name or f'{play.subject.name}_as_played'}".replace("-", "_")
    return "\n".join(
        [f'"""A play of {play.subject.name}, by its inputs."""', "", *imports, "", "", f"def {title}() -> None:", body]
    )


def _body(play: Play, names: Names, subject: str) -> Iterator[str]:
    kernel = "lifefold.core.kernel"
    yield f"    {docstring('The same inputs lead to the same states, effects and records.')}"
    alone = f"{names.of(kernel, 'alone')}({subject})[0]" if isinstance(play.subject, Machine) else subject
    yield f"    world = {names.of(kernel, 'World')}({alone})"
    yield "    for given in ("
    put = names.of(kernel, "Input")
    for aggregate, envelope in play.opening:
        yield f"        {put}({names.expression(aggregate)}, {names.expression(envelope)}),"
    yield "    ):"
    yield "        stepped = world.step(given)"
    yield '        assert isinstance(stepped, tuple), f"the opening is refused: {stepped!r}"'
    yield "        world, _ = stepped"
    yield "    played: tuple[tuple[Any, Any, Any], ...] = ("
    names.of("typing", "Any")
    for step in play.path():
        states = tuple((each.entity, str(each.after.state)) for each in step.reaction.transitions)
        effects = names.expression(tuple(each.effect for each in step.reaction.effects))
        yield "        ("
        yield f"            {put}({names.expression(step.aggregate)}, {names.expression(step.envelope)}),"
        yield f"            {names.expression(states)},"
        yield f"            {effects},"
        yield "        ),"
    yield f"    ){_REPLAY}"
    for aggregate, of in play.world.aggregates.items():
        for ref, entity in sorted(of.entities.items()):
            place, key, record = map(names.expression, (aggregate, ref, entity.record))
            yield f"    assert world.aggregates[{place}].entities[{key}].record == {record}"
    yield ""


def _found(subject: Machine[Any] | System) -> str:
    """Return the module and the name of a subject, as ``module:attribute``. Raises ``Unwritable``."""
    for name, module in sorted(sys.modules.items()):
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is subject and not name.startswith("__") and not attribute.startswith("_"):
                return f"{name}:{attribute}"
    raise Unwritable(f"no module has {subject.name!r}: give its source= as 'module:attribute'")
