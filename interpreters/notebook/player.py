"""The player in a notebook: buttons for the enabled inputs, the present world, and the tree of what was played."""

from functools import reduce
from pathlib import Path
from typing import Any, Final

import anywidget
import traitlets

from lifefold.core.kernel import Input, LifecycleEvent, Machine, System
from lifefold.interpreters.certificates.source import Unwritable
from lifefold.interpreters.notebook.history import History
from lifefold.interpreters.notebook.image import image
from lifefold.interpreters.notebook.play import MOST, Play, words
from lifefold.interpreters.notebook.play_picture import picture
from lifefold.interpreters.notebook.written_play import as_test
from lifefold.interpreters.views.picture import LayoutMissingError, lit, sequence_svg, statechart, svg
from lifefold.interpreters.views.sequence import sequence

_FRONT_END: Final = Path(__file__).with_name("player.js")
_DICT: Final[Any] = traitlets.Dict
_LIST: Final[Any] = traitlets.List
"""The types of traitlets do not declare their items."""


class Player(anywidget.AnyWidget):
    """Shows a play. The front end sends ``asked``: what to do, and a number. ``play`` is the value that is shown."""

    _esm = _FRONT_END
    shown: Any = _DICT().tag(sync=True)
    asked: Any = _LIST().tag(sync=True)

    def __init__(self, play: Play) -> None:
        """Show a play."""
        self.play = play
        self._states: Final = _states(play.subject)
        super().__init__(shown=self._shown())

    @traitlets.observe("asked")
    def _answer(self, change: Any) -> None:
        """Do what the front end asks for; a number that is not there any more does nothing."""
        what, number = str(change["new"][0]), int(change["new"][1])
        if what == "give" and 0 <= number < len(self.play.choices()):
            self.give(number)
        elif what == "back":
            self.back()
        elif what == "at" and 0 <= number < len(self.play.nodes):
            self.at(number)
        elif what == "test":
            self.shown = self._shown(self._written())

    def give(self, given: Input | int) -> None:
        """Give an input, or the enabled input of this number."""
        self._show(self.play.give(self.play.choices()[given] if isinstance(given, int) else given))

    def back(self) -> None:
        """Return to the world before the last input."""
        self._show(self.play.back())

    def at(self, number: int) -> None:
        """Go to a node of the tree."""
        self._show(self.play.at(number))

    def as_test(self, *, source: str = "", name: str = "") -> str:
        """Return the path as a test in Python."""
        return as_test(self.play, source=source, name=name)

    def as_journal(self) -> tuple[LifecycleEvent, ...]:
        """Return the journal of the path."""
        return self.play.as_journal()

    def _written(self) -> str:
        """Return the test, or what it needs that only the method ``as_test`` can be given."""
        try:
            return self.as_test()
        except Unwritable as error:
            return f"{error}; in a cell: print(player.as_test(source='module:attribute'))"

    def _show(self, play: Play) -> None:
        self.play = play
        self.shown = self._shown()

    def _shown(self, test: str = "") -> dict[str, Any]:
        play = self.play
        return {
            "choices": [words(each) for each in play.choices()[:MOST]],
            "text": play.text(),
            "tree": list(play.tree()),
            "now": play.now,
            "picture": picture(play),
            "chart": self._chart(),
            "test": test,
        }

    def _chart(self) -> str:
        """Return the states of a machine with the present ones lit, or the sequence diagram of a system."""
        if isinstance(self.play.subject, System):
            return sequence_svg(sequence(self.play.subject.name, self.play.path()))
        here = {str(entity.state) for of in self.play.world.aggregates.values() for entity in of.entities.values()}
        return reduce(lit, sorted(here), self._states)

    def _repr_mimebundle_(self, **kinds: Any) -> Any:
        """Return the widget, and for front ends without widgets the picture and the text of the play."""
        widget: Any = super()
        found: Any = widget._repr_mimebundle_(**kinds)
        bundle: dict[str, Any] = found[0] if found else {}
        metadata: dict[str, Any] = found[1] if found else {}
        return {**bundle, "text/plain": self.play.text(), **image(picture(self.play))}, metadata


def play(subject: Machine[Any] | System | History, opening: Any = (), *, at: int | None = None) -> Player:
    """Return a player of a machine, of a system with its opening, or of a history after its input number ``at``.

    Without ``at`` a history is played on from its end.
    """
    return Player(Play.fork(subject, at) if isinstance(subject, History) else Play.of(subject, opening))


def _states(subject: Machine[Any] | System) -> str:
    """Return the picture of a machine's states; empty for a system, or where pictures cannot be laid out."""
    try:
        return svg(statechart(subject)) if isinstance(subject, Machine) else ""
    except LayoutMissingError:
        return ""
