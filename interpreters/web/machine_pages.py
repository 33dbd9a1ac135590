"""The pages of machines: their tables, and their pictures, which are files of this package made by ``make pages``."""

from importlib import resources

from lifefold.core.kernel import Machine
from lifefold.interpreters import views
from lifefold.interpreters.web.agent_page import UnknownName
from lifefold.interpreters.web.structs import MachineLine, MachinePage, MachinesPage, Row


def machines_page() -> MachinesPage:
    """Return all machines and systems with a name."""
    kinds = {**dict.fromkeys(views.machines(), "machine"), **dict.fromkeys(views.systems(), "system")}
    return MachinesPage(tuple(MachineLine(name, kind, views.about()[name]) for name, kind in kinds.items()))


def machine_page(name: str) -> MachinePage:
    """Return the table and the picture of a machine; a system has a picture only. Raises ``UnknownName``."""
    line = next((each for each in machines_page().machines if each.name == name), None)
    if line is None:
        message = f"there is no machine {name!r}"
        raise UnknownName(message)
    subject = views.machine_named(name) if line.kind == "machine" else None
    rows = views.table_rows(subject) if isinstance(subject, Machine) else []
    found = (Row(each["from"], each["event"], each["when"], each["to"], tuple(each["effects"])) for each in rows)
    return MachinePage(line, tuple(found), picture(name))


def picture(name: str) -> str:
    """Return the picture of a machine with a name, as SVG; an empty text if there is none."""
    file = resources.files("lifefold.interpreters.web") / "pictures" / f"{name}.svg"
    return file.read_text(encoding="utf-8") if name in views.about() and file.is_file() else ""
