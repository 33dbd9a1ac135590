"""Draws interpreters/web/pictures: a picture of each machine and system, for the desk. Run by ``make pages``."""

from pathlib import Path

from lifefold.interpreters import views

FOLDER = Path(__file__).parents[1] / "interpreters" / "web" / "pictures"


def pictures() -> dict[str, str]:
    """Return the pictures by the names of their files."""
    drawn = {name: views.draw(machine, "svg") for name, machine in views.machines().items()}
    drawn |= {name: views.draw(system, "svg") for name, system in views.systems().items()}
    return {f"{name}.svg": text for name, text in drawn.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for stray in FOLDER.glob("*.svg"):
        stray.unlink()
    for file, text in pictures().items():
        (FOLDER / file).write_text(text)
