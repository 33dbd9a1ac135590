"""Writes docs/lifecycles: a page for every lifecycle, with its table and its picture. Run by ``make pages``."""

from pathlib import Path

from lifefold.interpreters import views

FOLDER = Path(__file__).parent / "lifecycles"
HEAD = """# The lifecycles

`make pages` writes these pages: the output of `lifefold table NAME --format markdown` and of `lifefold diagram NAME`.

| Name | Subject |
| --- | --- |
"""


def pages() -> dict[str, str]:
    """Return the pages by the names of their files."""
    machines, about = views.machines(), views.about()
    index = HEAD + "".join(f"| [{name}]({name}.md) | {about[name]} |\n" for name in machines)
    return {"README.md": index} | {
        f"{name}.md": f"{views.markdown(machine)}\n## Diagram\n\n```mermaid\n{views.mermaid(machine)}```\n"
        for name, machine in machines.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for stray in FOLDER.glob("*.md"):
        stray.unlink()
    for file, text in pages().items():
        (FOLDER / file).write_text(text)
