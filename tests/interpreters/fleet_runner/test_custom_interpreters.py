"""Interpreters of a fleet file are found, made, laid over the standard one; or it is told which cannot be, and why."""

import json
import re
import sys
from collections.abc import Generator
from inspect import unwrap
from pathlib import Path

import anyio
import pytest

from lifefold.effects import LogFatal, StorePrompt
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner, UnusableInterpreterError
from lifefold.interpreters.fleet_runner.custom import found

FLEET = """
[fleet]
name = "demo"

[[agents]]
name = "coder"
command = ["true", "{prompt}"]

[[tasks]]
id = "T1"
prompt = "Write"

"""

NOTED = """
from lifefold.effects import LogFatal, StorePrompt
from lifefold.interpreters.engine import Interpreter, handles

made = []

class Noted:
    def __init__(self, context, name="one", *, size=1):
        self.below, self.name = context.below, name
        self.run, self.size = context.run, size
        made.append(self)

    @handles(LogFatal)
    async def fatal(self, effect, context):
        pass

    @handles(StorePrompt)
    async def store(self, effect, context):
        pass

def function(context, **options):
    return Interpreter({LogFatal: options["handler"]})

def fails(context):
    raise RuntimeError("no key")

def nothing(context):
    return None

def picky(context, first="", second=""):
    raise ValueError(f"first: found {second!r}" if first == "named" else f"found {second!r}")

def without(context): ...
def strange(): ...
number = 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    """Return a folder with modules beside the fleet file; nothing of it stays known to this process."""
    (tmp_path / "noted.py").write_text(NOTED)
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def opened(folder: Path, *entries: str) -> Runner:
    """Open a fleet's log with these interpreters, and close it again."""
    file = folder / "fleet.toml"
    file.write_text(FLEET + "".join(f"[[interpreters]]\n{entry}\n" for entry in entries))

    async def make() -> Runner:
        runner = await Runner.open(load(file), folder / "log.db")
        runner.close()
        return runner

    return anyio.run(make)


def refused(folder: Path, *entries: str) -> str:
    with pytest.raises(UnusableInterpreterError) as error:
        opened(folder, *entries)
    assert not (folder / "log.db").exists()
    return str(error.value)


def test_the_first_goes_first_and_the_standard_one_last(folder: Path) -> None:
    """Each knows what is below it; what none of them performs is done as ever."""
    runner = opened(folder, 'use = "noted:Noted"\nfor = ["LogFatal"]', 'use = "noted:Noted"\nname = "two"\nsize = 2')
    second, first = sys.modules["noted"].made
    whole = runner.engine._interpreter
    assert (first.name, second.name, second.size) == ("one", "two", 2)
    assert [unwrap(whole.effects[kind]) for kind in (LogFatal, StorePrompt)] == [first.fatal, second.store]
    assert first.below.effects[LogFatal] == second.fatal
    assert second.below.effects[LogFatal] == runner.handlers.log_fatal
    standard = runner.handlers.interpreter().activities
    assert second.below.activities == standard
    assert whole.activities.keys() == standard.keys()


def test_a_run_has_one_identity_as_long_as_its_log_is(folder: Path) -> None:
    """The same when it goes on, and no other run's."""
    for _ in range(2):
        opened(folder, 'use = "noted:Noted"')
    (folder / "log.db").unlink()
    opened(folder, 'use = "noted:Noted"')
    one, again, other = (each.run for each in sys.modules["noted"].made)
    assert one == again != other


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (
            'use = "missing:Pager"',
            r"use: missing:Pager cannot be loaded: ModuleNotFoundError: No module named 'missing'",
        ),
        (
            'use = "noted:Pager"',
            r"noted:Pager cannot be loaded: AttributeError: module 'noted' has no attribute 'Pager'",
        ),
        (
            'use = "noted:number"',
            r"noted:number is 7; accepted: a class, or a function, that is called with the run context",
        ),
        ('use = "noted:fails"', r"noted:fails cannot be made: RuntimeError: no key \(.*/noted\.py, line 25\)"),
        ('use = "noted:nothing"', r"noted:nothing cannot be made: TypeError: NoneType has no handlers: mark methods"),
        ('use = "noted:strange"', r"noted:strange cannot be made: too many positional arguments; it has no options"),
        (
            'use = "noted:Noted"\nnmae = "x"',
            r"noted:Noted\.nmae: noted:Noted has no such option; did you mean \"name\"",
        ),
        ('use = "noted:picky"\nsecond = "two"', r"fleet\.toml:15: .*picky\.second: .* found 'two' \(.*/noted\.py"),
        ('use = "noted:picky"\nfirst = "named"\nsecond = "two"', r"fleet\.toml:15: .*picky\.first: .* found 'two'"),
        ('use = "noted:picky"\nfirst = "two"\nsecond = "two"', r"fleet\.toml:14: .*picky\.use: .* found 'two'"),
        ('use = "noted:Noted"\nx = 1', r"noted:Noted has no such option; accepted: for, name, size"),
        ('use = "noted:function"', r"noted:function cannot be made: KeyError: 'handler' \("),
        (
            'use = "noted:Noted"\nfor = "RunSession"',
            r"\.for: noted:Noted has no handler for RunSession; accepted: LogF",
        ),
        ('use = "broken:X"', r"broken:X cannot be loaded: SyntaxError: .*broken\.py, line 1"),
        ('use = "leaves:X"', r"leaves:X cannot be loaded: SystemExit: 3 \(.*/leaves\.py, line 1\)"),
        ('use = "pagr"', r"no interpreter pagr is installed; accepted: .*\"module:attribute\""),
    ],
)
def test_what_cannot_be_used_is_told_with_its_place_before_anything_is_written(
    folder: Path, entry: str, told: str
) -> None:
    """File, line and key, what happened and where, and what is accepted."""
    (folder / "broken.py").write_text("class:\n")
    (folder / "leaves.py").write_text("raise SystemExit(3)\n")
    said = refused(folder, entry)
    assert said.startswith(f"{folder}/fleet.toml:1")
    assert re.search(told, said), said


def test_all_that_is_wrong_is_told_at_once(folder: Path) -> None:
    """In the order of the file."""
    said = refused(folder, 'use = "missing:A"', 'use = "noted:number"')
    assert [line.split(": ")[1] for line in said.splitlines()] == [
        "interpreters.missing:A.use",
        "interpreters.noted:number.use",
    ]
    said = refused(folder, 'use = "noted:fails"', 'use = "noted:nothing"')
    assert [line.split(": ")[1] for line in said.splitlines()] == [
        "interpreters.noted:fails.use",
        "interpreters.noted:nothing.use",
    ]


def test_a_module_beside_the_fleet_file_goes_before_one_that_is_installed(folder: Path) -> None:
    """And what it imports later is found, while lifefold itself gets nothing from there."""
    opened(folder, 'use = "noted:Noted"')
    assert sys.path[-1] == str(folder)
    assert str(folder) not in sys.path[:-1]


def test_two_fleets_in_one_process_have_each_its_own_modules(folder: Path) -> None:
    """Modules of the same name, with what they import, are those beside the fleet file, also when one comes again."""
    for name in ("here", "there", "here"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "noted.py").write_text("from aside import NAME\n" + NOTED)
        (folder / name / "aside.py").write_text(f"NAME = {name!r}\n")
        (folder / name / "fleet.toml").write_text(FLEET + '[[interpreters]]\nuse = "noted:Noted"\n')
        ((_, factory),) = found(load(folder / name / "fleet.toml"))
        module = sys.modules[factory.__module__]
        assert (module.__file__, vars(module)["NAME"]) == (str(folder / name / "noted.py"), name)


def test_a_module_with_the_name_of_one_that_is_loaded_is_refused(folder: Path) -> None:
    """No other module is replaced, and none is taken for another one: the error says what to do."""
    (folder / "json.py").write_text("Decoder = 7\n")
    told = refused(folder, 'use = "json:Decoder"')
    assert "json:Decoder cannot be loaded: there is a module json already, " in told
    assert f"give the one in {folder} another name" in told
    assert json.loads("1") == 1


def install(folder: Path, distribution: str, **points: str) -> None:
    """Make a distribution that has entry points."""
    info = folder / f"{distribution}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[lifefold.interpreters]\n{lines}")


def test_an_installed_interpreter_is_named_by_its_entry_point(folder: Path) -> None:
    """Whichever distribution it comes with."""
    install(folder, "acme", pager="noted:Noted")
    opened(folder, 'use = "pager"\nfor = "LogFatal"\nname = "acme"')
    assert [each.name for each in sys.modules["noted"].made] == ["acme"]


def test_an_entry_point_that_cannot_be_loaded_says_whose_it_is(folder: Path) -> None:
    """The distribution with its version, the object, and why."""
    install(folder, "acme", pager="acme_pager:Pager", number="noted:number")
    told = (
        r"use: pager (acme_pager:Pager of acme 1.2) cannot be loaded: ModuleNotFoundError: No module named 'acme_pager'"
    )
    assert told in refused(folder, 'use = "pager"')
    assert "number (noted:number of acme 1.2) is 7; accepted: a class" in refused(folder, 'use = "number"')
    said = refused(folder, 'use = "pagr"')
    assert (
        'no interpreter pagr is installed; accepted: number, pager, "module:attribute"; did you mean "pager"?' in said
    )


def test_a_name_that_two_distributions_have_is_refused(folder: Path) -> None:
    """The name would be ambiguous."""
    install(folder, "acme", pager="noted:Noted")
    install(folder, "bell", pager="noted:fails")
    said = refused(folder, 'use = "pager"')
    assert (
        "pager names several interpreters: noted:Noted of acme 1.2; noted:fails of bell 1.2; accepted: one of" in said
    )


def test_a_fleet_without_interpreters_looks_for_none(folder: Path) -> None:
    """Not even the folder is looked into."""
    (folder / "fleet.toml").write_text(FLEET)
    assert found(load(folder / "fleet.toml")) == []
    assert str(folder) not in sys.path
