"""The picture of a play: its text as SVG, without Graphviz, scripts and fonts, for every front end."""

from html import escape
from textwrap import wrap
from typing import Final

from lifefold.interpreters.notebook.play import Play

_LINE_PT: Final = 15
_CHARACTER_PT: Final = 6.7
_COLUMNS: Final = 110
_FONTS: Final = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def picture(play: Play) -> str:
    """Return the present world of a play as SVG, always the same for the same play."""
    every = play.text().splitlines()
    lines = [part for line in every for part in wrap(line, _COLUMNS, subsequent_indent="      ", drop_whitespace=False)]
    wide = max(map(len, lines)) * _CHARACTER_PT + 20
    high = len(lines) * _LINE_PT + 16
    size = f'width="{wide:.0f}" height="{high}" viewBox="0 0 {wide:.0f} {high}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONTS}" font-size="11" fill="#24324a">',
            f"<title>{escape(play.subject.name)}, played</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *(_line(number, line) for number, line in enumerate(lines)),
            "</svg>\n",
        ]
    )


def _line(number: int, line: str) -> str:
    y = 8 + number * _LINE_PT
    mark = f'<rect x="4" y="{y}" width="100%" height="{_LINE_PT}" fill="#fff3c4"/>' if line.startswith("  →") else ""
    weight = ' font-weight="bold"' if not line.startswith(" ") else ""
    return f'{mark}<text x="10" y="{y + 11}" xml:space="preserve"{weight}>{escape(line)}</text>'
