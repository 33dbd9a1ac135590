"""Modules that are executed again from another text, together with the modules that import from them.

Classes and machines are not made again: the events and states of a mutant are those of the original.
"""

import ast
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Final


class Written:
    """The statements of a module, without its classes and its machine, which exist once."""

    def __init__(self, module: ModuleType) -> None:
        """Read the module's file."""
        assert module.__file__ is not None
        self.module: Final = module
        body = ast.parse(Path(module.__file__).read_text()).body
        self._kept: Final = {name_of(each): getattr(module, name_of(each)) for each in body if _is_one_only(each)}
        self.body: Final = [each for each in body if not _is_one_only(each)]

    def run(self, text: str | None = None) -> ModuleType:
        """Execute it, or another text, in its place: later imports find the result."""
        name = self.module.__name__
        loader = _Text("\n".join(map(ast.unparse, self.body)) if text is None else text)
        spec = spec_from_loader(name, loader, origin=self.module.__file__)
        assert spec is not None
        made = module_from_spec(spec)
        made.__dict__.update(self._kept, elsewhere=elsewhere)
        loader.exec_module(made)
        _put_in_place(name, made)
        return made


def _is_one_only(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ClassDef) or name_of(statement) == "machine"


def _put_in_place(name: str, module: ModuleType) -> None:
    package, _, leaf = name.rpartition(".")
    sys.modules[name] = module
    setattr(sys.modules[package], leaf, module)


@contextmanager
def restored(names: Iterable[str]) -> Generator[None]:
    """Restore the modules of these names at the end."""
    true = {name: sys.modules[name] for name in names}
    try:
        yield
    finally:
        for name, module in true.items():
            _put_in_place(name, module)


class _Text(InspectLoader):
    """Executes a module from a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        del fullname
        return self._text


def name_of(top: ast.stmt) -> str:
    """Return the name that a statement of a module defines; an empty text if there is none."""
    match top:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def elsewhere(ref: str) -> str:
    """Return another entity or aggregate of the same kind: another task, part of a task, worker slot or worker."""
    others = {"1": "2", "2": "1"} if "+" in ref else {"0": "1", "1": "0"}
    return ref[:-1] + others.get(ref[-1:], ref[-1:])
