"""The guarantee: a fleet file is read as it is meant, or every mistake in it is named, with line, key and remedy."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lifefold.core.fleet import AgentPlan, Budget, Plan, TaskPlan
from lifefold.core.lifecycles.session import Limits
from lifefold.interpreters import fleet_file as package
from lifefold.interpreters.fleet_file import FleetFileError, Problem, load, place_of
from lifefold.interpreters.fleet_file.budget import with_time
from lifefold.interpreters.fleet_file.problems import SHOWN_PROBLEMS
from lifefold.interpreters.fleet_file.tasks import LONGEST_ARGUMENT_BYTES

Write = Callable[[str], Path]

SMALL = """\
[fleet]
name = "demo"

[[agents]]
name = "coder"
command = ["sh", "-c", "true", "{prompt}"]
session_timeout = "30m"

[[tasks]]
id = "T1"
prompt = "Write hello.txt"
"""


@pytest.fixture(name="write")
def _write(tmp_path: Path) -> Write:
    def write(content: str) -> Path:
        path = tmp_path / "fleet.toml"
        path.write_text(content, encoding="utf-8")
        return path

    return write


def problems_of(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(FleetFileError) as raised:
        load(path)
    return raised.value.problems


def test_the_package_has_these_names() -> None:
    assert sorted(package.__all__) == package.__all__
    assert set(package.__all__) == {
        *(
            "Agent",
            "Fleet",
            "FleetFileError",
            "InterpreterEntry",
            "Problem",
            "Service",
            "describe_difference",
            "expand",
            "load",
            "load_text",
        ),
        *("format_duration", "format_size", "former_text", "in_force", "parse_duration_ms", "parse_size_bytes"),
        "place_of",
    }
    assert all(hasattr(package, name) for name in package.__all__)


def test_what_is_absent_has_its_default(write: Write, tmp_path: Path) -> None:
    fleet = load(write(SMALL))
    assert (fleet.name, fleet.repository, fleet.lease_ms, fleet.verify_timeout_ms) == ("demo", None, 60_000, 600_000)
    assert fleet.source == tmp_path / "fleet.toml"
    assert fleet.warnings == ()
    (agent,) = fleet.agents
    assert (agent.name, agent.env, agent.output_limit_bytes) == ("coder", {}, 10_000_000)
    assert agent.limits == Limits(session_timeout_ms=1_800_000)
    assert fleet.tasks == (TaskPlan("T1", "Write hello.txt"),)


def test_a_default_may_be_written_out(write: Write) -> None:
    written = 'output_limit = "10MB"\nreset_errors_on = "start"\ngrace = "5s"\njitter = 0'
    assert load(write(SMALL.replace("[[agents]]", f"[[agents]]\n{written}"))).agents == load(write(SMALL)).agents


def test_every_key_is_part_of_the_meaning(write: Write, tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "t2.md").write_text("Write more.\n", encoding="utf-8")
    fleet = load(
        write("""
            [fleet]
            name = "demo"
            repository = "."
            lease = "90s"
            verify_timeout = "1m"

            [[agents]]
            name = "coder"
            count = 2
            kind = "command"
            command = ["sh", "agent.sh", "{prompt}", "{prompt_file}", "{task}", "{worktree}"]
            env = { KEY = "value" }
            session_timeout = "30m"
            grace = "0s"
            max_consecutive_errors = 1
            max_total_errors = 7
            backoff_base = "1s"
            backoff_cap = "2s"
            jitter = 1
            reset_errors_on = "success"
            output_limit = "1MB"

            [[tasks]]
            id = "T1"
            prompt = "Write hello.txt"
            verify = [["test", "-f", "hello.txt"], ["true"]]

            [[tasks]]
            id = "T2.b"
            prompt_file = "prompts/t2.md"
            depends_on = ["T1", "T1"]
            priority = 1
            max_retries = 0
        """)
    )
    limits = Limits(1, 7, 1_000, 2_000, 1.0, 0, 1_800_000, "success")
    tasks = (
        TaskPlan("T1", "Write hello.txt", (("test", "-f", "hello.txt"), ("true",))),
        TaskPlan("T2.b", "Write more.\n", (), ("T1",), 1, 0),
    )
    agents = (AgentPlan("coder-1", limits, 60_000, follows=True), AgentPlan("coder-2", limits, 60_000, follows=True))
    assert fleet.plan == Plan("demo", agents, tasks, budget=with_time(Budget(), [limits]), guarded=True)
    assert (fleet.repository, fleet.lease_ms) == (tmp_path.resolve(), 90_000)
    assert [(agent.env, agent.output_limit_bytes) for agent in fleet.agents] == [({"KEY": "value"}, 1_000_000)] * 2


@pytest.mark.parametrize(
    ("section", "line", "key", "essentials"),
    [
        ("[fleet]", 'leese = "1s"', "fleet.leese", 'unknown key; did you mean "lease"?'),
        ("[fleet]", "zzz = 1", "fleet.zzz", "unknown key; accepted: name, repository, lease, verify_timeout"),
        ("[fleet]", "lease = 60", "fleet.lease", 'found 60, an integer; accepted: a duration as text, such as "500ms"'),
        ("[fleet]", 'lease = "5"', "fleet.lease", 'found "5"; accepted: a duration as text'),
        ("[fleet]", 'lease = "99999999h"', "fleet.lease", 'at most "8760h"'),
        ("[fleet]", 'lease = "999ms"', "fleet.lease", 'at least "1s"'),
        ("[fleet]", 'verify_timeout = "0s"', "fleet.verify_timeout", 'at least "1ms"'),
        ("[fleet]", 'repository = "nowhere"', "fleet.repository", 'found "nowhere", which is not a folder'),
        ("[fleet]", 'repository = "fleet.toml"', "fleet.repository", "which is not a folder"),
        ("[fleet]", "repository = 1979-05-27", "fleet.repository", "found 1979-05-27, a date; accepted: a text"),
        ("[[agents]]", "count = 0", "agents.coder.count", "found 0, an integer; accepted: an integer from 1 to 1000"),
        ("[[agents]]", "count = true", "agents.coder.count", "found true, a boolean"),
        ("[[agents]]", 'kind = "robot"', "agents.coder.kind", 'found "robot"; accepted: "command" or "python"'),
        ("[[agents]]", "env = { KEY = 5 }", "agents.coder.env.KEY", "found 5, an integer; accepted: a text in quotes"),
        ("[[agents]]", 'env = { "A=B" = "x" }', "agents.coder.env.A=B", "a variable's name without ="),
        ("[[agents]]", "env = []", "agents.coder.env", "found an empty array; accepted: a table of texts"),
        ("[[agents]]", "grace = 5.0", "agents.coder.grace", "found 5.0, a float; accepted: a duration"),
        ("[[agents]]", "max_consecutive_errors = 0", "agents.coder.max_consecutive_errors", "an integer from 1 to"),
        ("[[agents]]", "max_total_errors = -1", "agents.coder.max_total_errors", "an integer from 1 to"),
        ("[[agents]]", 'backoff_base = "0s"', "agents.coder.backoff_base", 'at least "1ms"'),
        ("[[agents]]", 'backoff_cap = "0ms"', "agents.coder.backoff_cap", 'at least "1ms"'),
        ("[[agents]]", "jitter = 1.5", "agents.coder.jitter", "found 1.5, a float; accepted: a number from 0 to 1"),
        ("[[agents]]", "jitter = nan", "agents.coder.jitter", "a number from 0 to 1"),
        ("[[agents]]", 'reset_errors_on = "x"', "agents.coder.reset_errors_on", 'accepted: "start" or "success"'),
        ("[[agents]]", "output_limit = 10", "agents.coder.output_limit", "accepted: a size as text"),
        ("[[agents]]", 'output_limit = "10"', "agents.coder.output_limit", 'found "10"; accepted: a size as text'),
        ("[[agents]]", "output_limit = '2000GiB'", "agents.coder.output_limit", 'at most "1024GiB"'),
        ("[[agents]]", 'output_limit = "9B"', "agents.coder.output_limit", 'at least "1kB"'),
        ("[[tasks]]", 'verify = ["test", "-f"]', "tasks.T1.verify", "mind the double brackets"),
        (
            "[[tasks]]",
            "verify = [[]]",
            "tasks.T1.verify[1]",
            "found an empty array; accepted: the program and its arguments",
        ),
        ("[[tasks]]", 'verify = [["true"], ["true", 3]]', "tasks.T1.verify[2][2]", "found 3, an integer"),
        ("[[tasks]]", 'verify = [["true"], ["no-such"]]', "tasks.T1.verify[2][1]", "a program on PATH, or the path of"),
        ("[[tasks]]", 'verify = [["/no/such"]]', "tasks.T1.verify[1][1]", 'found "/no/such", which cannot be run'),
        ("[[tasks]]", 'depends_on = "T1"', "tasks.T1.depends_on", 'found "T1"; accepted: an array of texts'),
        (
            "[[tasks]]",
            'depends_on = ["T11"]',
            "tasks.T1.depends_on",
            'found "T11"; accepted: ids of tasks in this file; did you',
        ),
        ("[[tasks]]", "priority = 0", "tasks.T1.priority", "an integer from 1 to"),
        ("[[tasks]]", "max_retries = -1", "tasks.T1.max_retries", "an integer from 0 to"),
        (
            "[[tasks]]",
            'prompt_file = "x"',
            "tasks.T1.prompt_file",
            "both prompt and prompt_file; accepted: exactly one",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_line_and_what_is_accepted(
    write: Write, section: str, line: str, key: str, essentials: str
) -> None:
    content = SMALL.replace(f"{section}\n", f"{section}\n{line}\n")
    (problem,) = [each for each in problems_of(write(content)) if each.key == key]
    assert problem.line == content.splitlines().index(line) + 1
    assert essentials in problem.message
    assert str(problem).startswith(f"{write(content)}:{problem.line}: {key}: ")


@pytest.mark.parametrize(
    ("old", "new", "key", "essentials"),
    [
        (
            'name = "demo"',
            'name = "de mo"',
            "fleet.name",
            'found "de mo"; accepted: 1 to 64 of the characters a to z, A to Z, 0 to 9',
        ),
        ('name = "demo"', "", "fleet", "name is missing"),
        ('name = "coder"', 'name = "a/b"', "agents.a/b.name", 'found "a/b"'),
        ('name = "coder"', "", "agents[1]", "name is missing"),
        ('id = "T1"', "", "tasks[1]", "id is missing"),
        (
            'id = "T1"',
            "id = 1",
            "tasks[1].id",
            "found 1, an integer; accepted: 1 to 64 of the characters a to z, A to Z, 0 to 9",
        ),
        ('id = "T1"', 'id = "a..b"', "tasks.a..b.id", "branch and file names"),
        ('id = "T1"', 'id = "a.lock"', "tasks.a.lock.id", "not ending in . or .lock"),
        ('id = "T1"', 'id = "a."', "tasks.a..id", "not ending in . or .lock"),
        ('prompt = "Write hello.txt"', "", "tasks.T1", "prompt or prompt_file is missing"),
        (
            'prompt = "Write hello.txt"',
            'prompt = " "',
            "tasks.T1.prompt",
            'found " "; accepted: a text in quotes, not empty',
        ),
        ('prompt = "Write hello.txt"', 'prompt = "a\\u0000"', "tasks.T1.prompt", "without the character NUL"),
        (
            'prompt = "Write hello.txt"',
            'prompt_file = "no.md"',
            "tasks.T1.prompt_file",
            'found "no.md", which is not a file',
        ),
        ('command = ["sh", "-c", "true", "{prompt}"]', "", "agents.coder", "command is missing"),
        (
            '["sh", "-c", "true", "{prompt}"]',
            "[]",
            "agents.coder.command",
            "found an empty array; accepted: the program",
        ),
        (
            '["sh", "-c", "true", "{prompt}"]',
            '"sh agent"',
            "agents.coder.command",
            'found "sh agent"; accepted: the program',
        ),
        ('["sh", "-c", "true", "{prompt}"]', '[""]', "agents.coder.command[1]", "a text in quotes, not empty"),
        ('["sh", "-c", "true", "{prompt}"]', '["sh", 3]', "agents.coder.command[2]", "found 3, an integer"),
        (
            '"{prompt}"',
            '"{promt}"',
            "agents.coder.command[4]",
            'found "{promt}"; accepted: {prompt}, {prompt_file}, {task}',
        ),
        ('"{prompt}"', '"{"', "agents.coder.command[4]", "a brace itself is written {{ or }}"),
        ('"sh"', '"no-such-program"', "agents.coder.command[1]", 'found "no-such-program", which is not there'),
        ('"sh"', '"/tmp"', "agents.coder.command[1]", 'found "/tmp", which is a folder'),
        ('"sh"', '"./fleet.toml"', "agents.coder.command[1]", "which is not executable"),
        ('"sh"', '"sh agent.sh"', "agents.coder.command[1]", "each argument is a text of its own"),
        ('"sh"', '"./agent.sh"', "agents.coder.command[1]", "from the fleet file's folder; it must be executable"),
        (
            "[[agents]]",
            "[agents]",
            "agents",
            "found a table; accepted: an array of tables, each under its own [[agents]]",
        ),
        ("[fleet]", "[[fleet]]", "fleet", "found an array; accepted: a table, [fleet]"),
        ("[[tasks]]", "[[taks]]", "taks", 'unknown key; did you mean "tasks"?'),
        ("[[tasks]]", "[[taks]]", "tasks", "there are none; write at least one [[tasks]]"),
        ("[[agents]]", "[[other]]", "agents", "there are none; write at least one [[agents]]"),
    ],
)
def test_what_cannot_be_is_named(write: Write, old: str, new: str, key: str, essentials: str) -> None:
    found = {problem.key: problem.message for problem in problems_of(write(SMALL.replace(old, new)))}
    assert essentials in found[key]


@pytest.mark.parametrize("header", ["[[interpretres]]", "[interpretres]", "[interpretres.pager]"])
def test_a_table_that_there_is_not_is_told_with_its_line(write: Write, header: str) -> None:
    """Also if it is an array of tables, or only tables within it have headers."""
    (problem,) = problems_of(write(f'{SMALL}\n{header}\nuse = "pager:Pager"\n'))
    assert (problem.key, problem.line) == ("interpretres", SMALL.count("\n") + 2)


def test_all_mistakes_are_told_together_in_the_order_of_the_file(write: Write) -> None:
    path = write(SMALL.replace('"demo"', "1").replace('"30m"', "30").replace('"T1"', '"T 1"'))
    problems = problems_of(path)
    assert [problem.line for problem in problems] == [2, 7, 10]
    assert str(FleetFileError(problems)).splitlines() == [str(problem) for problem in problems]


def test_a_file_with_very_many_mistakes_is_told_in_a_bounded_number_of_lines(write: Write) -> None:
    error = FleetFileError(problems_of(write(SMALL + "\n".join(f"x{n} = {n}" for n in range(100)))))
    assert len(error.problems) == 100
    assert str(error).splitlines()[SHOWN_PROBLEMS:] == [f"and {100 - SHOWN_PROBLEMS} more"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], '"a" is given twice; first in line 1'),
        (["a", "A"], '"A" is given twice, but for upper and lower case, as "a"; first in line 1'),
    ],
)
def test_no_name_is_given_twice(write: Write, names: list[str], message: str) -> None:
    agents = ", ".join(f'{{ name = "{name}", command = ["sh"] }}' for name in names)
    tasks = ", ".join(f'{{ id = "{name}", prompt = "p" }}' for name in names)
    problems = problems_of(write(f'agents = [{agents}]\ntasks = [{tasks}]\nfleet = {{ name = "x" }}\n'))
    assert [problem.message for problem in problems] == [message, message.replace("line 1", "line 2")]


def test_a_counted_agent_may_not_take_the_name_of_another(write: Write) -> None:
    other = '[[agents]]\nname = "coder-2"\ncommand = ["sh", "{prompt}"]\n'
    (problem,) = problems_of(write(SMALL.replace('"coder"', '"coder"\ncount = 2') + other))
    assert problem.message == '"coder-2" is given twice; first in line 5'


@pytest.mark.parametrize(
    ("needs", "cycles"),
    [
        ({"A": "A"}, ["A -> A"]),
        ({"A": "C", "B": "A", "C": "B"}, ["A -> C -> B -> A"]),
        ({"X": "A", "A": "B", "B": "A", "C": "D", "D": "C"}, ["A -> B -> A", "C -> D -> C"]),
    ],
)
def test_a_dependency_cycle_is_named(write: Write, needs: dict[str, str], cycles: list[str]) -> None:
    tasks = "".join(
        f'[[tasks]]\nid = "{task}"\nprompt = "p"\ndepends_on = ["{need}"]\n' for task, need in needs.items()
    )
    problems = problems_of(write(SMALL + tasks))
    assert sorted(problem.message.rpartition(": ")[2] for problem in problems) == cycles
    assert all(problem.key == f"tasks.{problem.message.rpartition(': ')[2][0]}.depends_on" for problem in problems)


def test_a_prompt_too_long_for_an_argument_is_refused_unless_a_file_carries_it(write: Write) -> None:
    content = SMALL.replace("Write hello.txt", "x" * (LONGEST_ARGUMENT_BYTES + 1))
    (problem,) = problems_of(write(content))
    assert "give your agents {prompt_file} instead" in problem.message
    assert load(write(content.replace("{prompt}", "{prompt_file}"))).tasks


@pytest.mark.parametrize(
    ("content", "essentials"),
    [(b"\xff", 'cannot read "p.md": it is not UTF-8'), (b" \n", "not empty"), (b"a\0", "NUL")],
)
def test_a_prompt_file_must_be_a_text(write: Write, tmp_path: Path, content: bytes, essentials: str) -> None:
    (tmp_path / "p.md").write_bytes(content)
    (problem,) = problems_of(write(SMALL.replace('prompt = "Write hello.txt"', 'prompt_file = "p.md"')))
    assert essentials in problem.message


@pytest.mark.parametrize(
    ("content", "essentials"),
    [
        (b"[fleet\n", ":1: this is not TOML: "),
        (b"[fleet]\nname = 1\nname = 2\n", ":3: this is not TOML: "),
        (b"\xff", "cannot read this fleet file: it is not UTF-8: byte 0 is 0xff"),
        (b"n = " + b"9" * 5_000, "this is not TOML: "),
        (b"n = " + b"[" * 5_000 + b"]" * 5_000, "this is nested too deeply"),
        (b"#" * 10_000_001, "it has more than 10000000 bytes"),
    ],
)
def test_what_is_no_toml_is_named(tmp_path: Path, content: bytes, essentials: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_bytes(content)
    (problem,) = problems_of(path)
    assert essentials in str(problem)


def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path: Path) -> None:
    assert "No such file" in str(problems_of(tmp_path / "no.toml")[0])
    assert "directory" in str(problems_of(tmp_path)[0])


@pytest.mark.parametrize(
    ("old", "new", "essentials"),
    [
        ('session_timeout = "30m"', "", "agents.coder: no session_timeout: a session that hangs is never ended"),
        ('"{prompt}"', '"x"', "agents.coder.command: neither {prompt} nor {prompt_file}"),
        (
            '"30m"',
            '"30m"\nbackoff_base = "2m"',
            "agents.coder.backoff_base: longer than backoff_cap, so every pause lasts 1m",
        ),
    ],
)
def test_what_works_but_is_hardly_meant_is_a_warning(write: Write, old: str, new: str, essentials: str) -> None:
    (warning,) = load(write(SMALL.replace(old, new))).warnings
    assert essentials in warning
    assert warning.startswith(f"{write(SMALL)}:")


def test_a_verification_program_may_be_a_path_in_the_worktree(write: Write) -> None:
    assert load(write(SMALL.replace('id = "T1"', 'id = "T1"\nverify = [["./check"], ["bin/test"]]'))).warnings == ()


@pytest.mark.parametrize("key", ["fleet", "prompt"])
def test_a_pipe_is_refused_and_not_waited_for(write: Write, tmp_path: Path, key: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    prompt = write(SMALL.replace('prompt = "Write hello.txt"', 'prompt_file = "pipe"'))
    assert "file" in problems_of(tmp_path / "pipe" if key == "fleet" else prompt)[0].message


def test_the_place_of_a_key_is_told_for_what_is_found_out_later(write: Write) -> None:
    path = write(SMALL.replace('name = "demo"', 'name = "demo"\nrepository = "."'))
    assert place_of(path, "fleet", "repository") == f"{path}:3: fleet.repository"
    assert place_of(path.with_name("gone"), "fleet", "repository") == f"{path.with_name('gone')}: fleet.repository"


def test_a_program_that_is_a_path_is_found_from_the_files_folder(write: Write, tmp_path: Path) -> None:
    (tmp_path / "agent.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "agent.sh").chmod(0o755)
    fleet = load(write(SMALL.replace('"sh"', '"./agent.sh"')))
    assert Path(fleet.agents[0].command[0]).samefile(tmp_path / "agent.sh")
    assert Path(fleet.agents[0].command[0]).is_absolute()


def test_a_program_is_looked_for_on_the_agents_own_path(write: Write, tmp_path: Path) -> None:
    (tmp_path / "own-agent").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "own-agent").chmod(0o755)
    content = SMALL.replace('"sh"', '"own-agent"')
    assert "own-agent" in problems_of(write(content))[0].message
    assert load(write(content.replace("30m", f'30m"\nenv.PATH = "{tmp_path}'))).agents


def test_a_program_of_the_worktree_is_not_looked_for(write: Write) -> None:
    assert load(write(SMALL.replace('"sh"', '"{worktree}/agent.sh"'))).agents[0].command[0] == "{worktree}/agent.sh"
