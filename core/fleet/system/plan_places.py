"""Places in a plan, by which differences, obstacles and commands name its parts: ``tasks.T1.verify``.

A name with a dot has quotes, as in TOML: ``tasks."v1.2".verify``. So a place has one meaning, whatever the other tasks
are called.
"""


def place_of(*path: str) -> str:
    """Return the place of a path, from the kind of the part to its key."""
    return ".".join(f'"{each}"' if "." in each else each for each in path)


def parts_of(place: str) -> tuple[str, str, str]:
    """Return the kind, the name and the key of a place; the name of ``fleet.KEY`` is empty."""
    kind, _, rest = place.partition(".")
    if kind == "fleet":
        return kind, "", rest
    if rest.startswith('"'):
        name, _, key = rest[1:].partition('"')
        return kind, name, key[1:]
    name, _, key = rest.partition(".")
    return kind, name, key
