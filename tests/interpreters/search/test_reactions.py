"""The shortcuts of the search agree with the rules, and shared values are the same objects."""

import pytest

from canonical_form import in_form
from lifefold.core.kernel import Machine, Reaction, alone, possible, react, replace
from lifefold.interpreters.check import Bounds
from lifefold.interpreters.search.canonical import NOW_MS, Canonical
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.exchange import Carried
from lifefold.interpreters.search.graph import Graph, explore
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.search.reactions import Reactions
from lifefold.interpreters.search.state_numbers import Numbered
from lifefold.interpreters.targets.check_targets import named

EACH = 200
"""How many states of each aggregate are looked at."""


def searched(name: str) -> Graph:
    """Search some states of what is shipped under this name: an aggregate without rules, or a system."""
    target = named(name)
    subject, opening = target.subject, target.opening
    if isinstance(subject, Machine):
        subject, openings = alone(subject)
        opening = tuple(openings.items())
    bounds, kept = Bounds(within=target.bounds.within, states=1_500), frozenset[str]()
    while True:
        try:
            return explore(ProductSystem(subject, opening, Judge(subject), bounds, kept))
        except Carried as carried:
            kept |= carried.names


NAMES = (
    "session",
    "lease",
    "fleet",
    *(pytest.param(each, marks=pytest.mark.campaign) for each in ("process", "runtime")),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_reaction_is_what_the_rules_say(name: str) -> None:
    """All of it: state, effects, transitions, refusals; also when the same entity has been asked before."""
    for part in searched(name).product_system.components:
        reactions = Reactions(part.of)
        for aggregate in part.states[:EACH]:
            for each in possible(part.of, aggregate, NOW_MS):
                assert reactions(aggregate, each.envelope) == react(part.of, aggregate, each.envelope)


@pytest.mark.parametrize("name", NAMES)
def test_an_event_of_an_activity_is_accepted_from_no_other_sender(name: str) -> None:
    """The short cut asks for that as the rules do."""
    for part in searched(name).product_system.components:
        reactions, aggregate = Reactions(part.of), part.states[0]
        for ref in aggregate.entities:
            machine = part.of.machine_of(ref)
            assert machine is not None
            for kind in machine.reports:
                for event in kind.examples():
                    envelope = replace(next(possible(part.of, aggregate, NOW_MS)).envelope, entity=ref, event=event)
                    told = replace(envelope, slot="", generation=0)
                    assert reactions(aggregate, told) == react(part.of, aggregate, told)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_has_the_number_of_its_form(name: str) -> None:
    """Two states have one number if their forms are equal, and two numbers if not; what is kept is the form."""
    product_system = searched(name).product_system
    for part in product_system.components:
        form, numbered = Canonical(part.of, product_system.kept), Numbered(Canonical(part.of, product_system.kept))
        assert numbered.find(part.states[0]) == -1
        for aggregate in part.states[:EACH]:
            came = [react(part.of, aggregate, each.envelope) for each in possible(part.of, aggregate, NOW_MS)]
            for after in [each.aggregate for each in came if isinstance(each, Reaction)]:
                number = numbered.add(after)
                assert numbered.states[number] == in_form(form, after)
                assert numbered.find(after) == numbered.find(in_form(form, after)) == number
        assert len(numbered.states) == len(set(numbered.states))


def test_what_is_in_many_states_is_kept_once() -> None:
    """Equal entities of different states are one object."""
    board, *_ = searched("fleet").product_system.components
    entities = [entity for aggregate in board.states for entity in aggregate.entities.values()]
    assert len({id(entity) for entity in entities}) == len(set(entities)) < len(entities)


def test_all_states_can_be_had_some_at_a_time() -> None:
    """In their order, with all of their numbers."""
    graph = searched("fleet")
    worlds = [world for _, columns in graph.chunks() for world in zip(*map(list, columns), strict=True)]
    assert worlds == [graph.world(state) for state in range(graph.count)]
