"""The form of a whole aggregate, as ``canonical`` has it of entities: what ``numbered`` finds without making it."""

from lifefold.core.kernel import Aggregate, PersistentMap
from lifefold.interpreters.search.canonical import NONE, Canonical, rewritten


def in_form(form: Canonical, aggregate: Aggregate) -> Aggregate:
    """Return an aggregate in the form."""
    alone = [form.alone(entity) for entity in aggregate.entities.values()]
    change = form.change(NONE.union(*map(form.identifiers_of, alone)))
    forms = alone if change is None else [rewritten(entity, change) for entity in alone]
    return Aggregate(aggregate.name, 0, PersistentMap({entity.ref: entity for entity in forms}), aggregate.views)
