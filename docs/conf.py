"""The documentation as a site. ``make site`` builds it with every warning as an error; it needs no network.

The pages are those of this folder. Two pages are generated when the site is built, from the public names and from the
parser of the command line. Diagrams of shipped lifecycles are drawn from their machines.
"""

import re
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

import lifefold
from lifefold.interpreters import views
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.views.picture import overview, statechart, svg

HERE = Path(__file__).parent
LINK = re.compile(r"\[(?P<text>[^]]+)\]\((?P<up>(?:\.\./)+)(?P<path>[\w./-]+)(?:#[\w-]+)?\)")
DIAGRAM = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)

project = "lifefold"
version = release = version_of("lifefold")
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["certificates"]
myst_heading_anchors = 4
nitpicky = True
html_theme = "furo"
html_title = f"lifefold {release}"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}

ELSEWHERE = ("ANY", "STAY", "__version__", "replace")
"""Constants, and a function of msgspec: they are described in a sentence."""


def setup(app: Sphinx) -> None:
    """Generate the pages that are made of code, and fit the others into a site."""
    app.connect("builder-inited", lambda _app: generate())
    app.connect("source-read", fit)


def generate() -> None:
    """Write the reference of the public names and of the command line."""
    (HERE / "api.md").write_text("\n".join(api()))
    (HERE / "commands.md").write_text("\n".join(commands()))


def api() -> Iterator[str]:
    """Yield the lines of the page with every public name, its meaning, units and errors."""
    yield "# Public names\n\nEvery name here is imported from `lifefold`: `from lifefold import Machine, row`.\n"
    yield "`ANY` is every state of a machine as a source, `STAY` the state itself as a target."
    yield "`replace(record, field=value)` is a copy of a record with other values (`msgspec.structs.replace`).\n"
    yield "```{eval-rst}"
    for name in lifefold.__all__:
        if name not in ELSEWHERE:
            kind = "autoclass" if isinstance(getattr(lifefold, name), type) else "autofunction"
            yield from (f".. {kind}:: lifefold.{name}", "")
    yield "```"


def commands() -> Iterator[str]:
    """Yield the lines of the page with the help of every command, as the terminal prints it."""
    whole = parser()
    yield "# Commands\n\nThe help of each command, as `lifefold COMMAND --help` prints it.\n"
    for action in whole._subparsers._group_actions if whole._subparsers else ():  # noqa: SLF001 - argparse has no way to ask
        for name, command in (action.choices or {}).items():
            yield f"## {name}\n\n```text\n{command.format_help()}```\n"


def fit(_app: Sphinx, page: str, source: list[str]) -> None:
    """Draw the diagram of a lifecycle and of the fleet, and name files outside of the site by their paths."""
    place, _, name = page.rpartition("/")
    if place == "lifecycles" and name in views.machines():
        drawn = f"```{{raw}} html\n{svg(statechart(views.machine_named(name)))}\n```\n"
        source[0] = DIAGRAM.sub(lambda _found: drawn, source[0])
    if page == "fleet/wiring":
        wired = f"```{{raw}} html\n{svg(overview(views.systems()['fleet']))}\n```\n"
        source[0] = DIAGRAM.sub(lambda _found: wired, source[0])
    inside = page.count("/")

    def linked(link: re.Match[str]) -> str:
        if link["up"].count("../") <= inside:
            return link[0]
        is_path = link["text"] == link["path"]
        return f"`{link['path']}`" if is_path else f"{link['text']} (`{link['path']}` in the repository)"

    source[0] = LINK.sub(linked, source[0])
