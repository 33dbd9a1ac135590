"""A slider over a history, with a state diagram that follows it; where no widget can run, a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anywidget
import traitlets

from lifefold.core.kernel import Machine
from lifefold.interpreters.notebook.history import Stop
from lifefold.interpreters.notebook.image import image
from lifefold.interpreters.views.picture import statechart, svg

_FRONT_END: Final = Path(__file__).with_name("scrubber.js")
_LIST: Final[Any] = traitlets.List
"""The type of traitlets does not declare its items."""


class Scrubber(anywidget.AnyWidget):
    """Shows the transitions of one entity. ``now`` is the stop that is shown, and can be set from either side."""

    _esm = _FRONT_END
    picture = traitlets.Unicode().tag(sync=True)
    stops: Any = _LIST().tag(sync=True)
    now = traitlets.Int().tag(sync=True)

    def __init__(self, machine: Machine[Any], stops: Sequence[Stop], *, now: int = 0) -> None:
        """Take the machine and at least one stop. Raises ``ValueError`` if there is none."""
        if not stops:
            raise ValueError("there is no transition, so there is no stop to show")
        self._machine: Final = machine
        self._stops: Final = tuple(stops)
        lines = [{"line": stop.line(), "state": str(stop.after)} for stop in self._stops]
        super().__init__(picture=svg(statechart(machine)), stops=lines, now=now)

    @traitlets.validate("now")
    def _is_a_stop(self, proposal: Any) -> int:
        """Keep within the stops."""
        return max(0, min(int(proposal["value"]), len(self._stops) - 1))

    def here(self) -> Stop:
        """Return the stop that is shown."""
        return self._stops[int(self.now)]

    def _repr_mimebundle_(self, **kinds: Any) -> Any:
        """Return the widget, and for front ends without widgets the picture and the text of this stop."""
        widget: Any = super()
        shown: Any = widget._repr_mimebundle_(**kinds)
        bundle: dict[str, Any] = shown[0] if shown else {}
        metadata: dict[str, Any] = shown[1] if shown else {}
        stop = self.here()
        drawing = statechart(self._machine, at=stop.after, crossed=[(stop.before, stop.after)])
        return {**bundle, "text/plain": stop.line(), **image(svg(drawing))}, metadata
