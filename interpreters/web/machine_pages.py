"""The pages of machines: their tables, their proofs, and their pictures, files of this package from ``make pages``."""

from importlib import resources

from lifefold.core.kernel import Machine
from lifefold.interpreters import views
from lifefold.interpreters.explain.why.phrases import count
from lifefold.interpreters.web.agent_page import UnknownName
from lifefold.interpreters.web.machine_structs import Declared, MachineLine, MachinePage, MachinesPage, Proven, Row
from lifefold.interpreters.web.proofs import Proof, declared, is_of_this_code, proofs_of
from lifefold.interpreters.web.report_structs import ReportLine


def machines_page() -> MachinesPage:
    """Return all machines and systems with a name."""
    kinds = {**dict.fromkeys(views.machines(), "machine"), **dict.fromkeys(views.systems(), "system")}
    return MachinesPage(tuple(MachineLine(name, kind, views.about()[name]) for name, kind in kinds.items()))


def machine_page(name: str, reports: tuple[ReportLine, ...] = ()) -> MachinePage:
    """Return the page of a machine with the ``reports`` on it; a system has no table. Raises ``UnknownName``."""
    line = next((each for each in machines_page().machines if each.name == name), None)
    if line is None:
        message = f"there is no machine {name!r}"
        raise UnknownName(message)
    subject = views.machine_named(name) if line.kind == "machine" else views.systems()[name]
    rows = views.table_rows(subject) if isinstance(subject, Machine) else []
    found = (Row(each["from"], each["event"], each["when"], each["to"], tuple(each["effects"])) for each in rows)
    properties = tuple(Declared(str(each.property_kind), each.name) for each in declared(subject))
    proven = tuple(Proven(each, is_of_this_code(each), _bounds(each)) for each in proofs_of(name))
    return MachinePage(line, tuple(found), picture(name), properties, proven, reports)


def _bounds(of: Proof) -> str:
    """Return the bounds of a proof in words."""
    commands, depth = of.limits.get("commands"), of.limits.get("depth")
    parts = [
        "any number of operator commands" if commands is None else f"at most {count(commands, 'operator command')}"
    ]
    parts += [] if depth is None else [f"at most {count(depth, 'step')} deep"]
    if of.crashes is not None:
        times = "once" if of.crashes.crashes == 1 else f"{of.crashes.crashes} times"
        parts.append(f"a runner that crashes at most {times}, with {count(of.crashes.inputs, 'input')} before it")
    return "; ".join(parts)


def picture(name: str) -> str:
    """Return the picture of a machine with a name, as SVG; an empty text if there is none."""
    file = resources.files("lifefold.interpreters.web") / "pictures" / f"{name}.svg"
    return file.read_text(encoding="utf-8") if name in views.about() and file.is_file() else ""
