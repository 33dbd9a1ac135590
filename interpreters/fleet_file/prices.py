"""The ``[[prices]]`` of a fleet file: what the tokens of a model cost, for agent programs that report no money."""

from lifefold.interpreters.adapters.prices import Price
from lifefold.interpreters.fleet_file import forms
from lifefold.interpreters.fleet_file.keys import Key, Section
from lifefold.interpreters.fleet_file.table import Table
from lifefold.interpreters.fleet_file.values import shown


class PriceKeys(Section, header="[[prices]]"):
    """The price of a model, in US dollars for a million tokens, for programs that report tokens and no money."""

    model = Key(forms.TEXT, "the model, as `model` of an agent has it", "", required=True)
    input = Key(forms.PRICE, "the price of fresh input, and of input that is written to a cache", 0, required=True)
    cached_input = Key[int | None](
        forms.PRICE, "the price of input that is read from a cache", None, absent="the price of `input`"
    )
    output = Key(forms.PRICE, "the price of output, reasoning included", 0, required=True)


def read_prices(root: Table) -> dict[str, Price]:
    """Return the prices of the file, by model."""
    found: dict[str, Price] = {}
    for table in root.tables(PriceKeys):
        model, fresh = table.read(PriceKeys.model), table.read(PriceKeys.input)
        cached = table.read(PriceKeys.cached_input)
        if model and model in found:
            table.problem("model", f"found {shown(model)}, which has a price already; accepted: one price a model")
        found[model] = Price(fresh, fresh if cached is None else cached, table.read(PriceKeys.output))
        table.finish()
    return found
