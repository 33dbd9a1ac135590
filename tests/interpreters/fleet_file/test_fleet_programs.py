"""The guarantee: an agent whose kind is an adapter needs no command, and a file that cannot run it is refused."""

from pathlib import Path

import pytest

from lifefold.interpreters.adapters import Brief, Conversation, Permissions, Reports, registry
from lifefold.interpreters.adapters.command import Command
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, describe_difference, load, programs
from lifefold.interpreters.fleet_file.model import AgentProgram

FILE = """\
[fleet]
name = "demo"
{fleet}

[[agents]]
name = "coder"
session_timeout = "30m"
{agent}

[[tasks]]
id = "T1"
prompt = "Write"
{task}
"""


def read(folder: Path, agent: str, *, fleet: str = "", task: str = "") -> Fleet:
    """Return the fleet of a file with these lines."""
    path = folder / "fleet.toml"
    path.write_text(FILE.format(fleet=fleet, agent=agent, task=task))
    return load(path)


@pytest.fixture(name="here", autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Offer the programs of some adapters on PATH."""
    for name in ("claude", "codex", "{odd}"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_an_agent_program_needs_no_command_and_no_placeholders(here: Path) -> None:
    """Its command is the program, and nothing is warned about."""
    found = read(here, 'kind = "claude"')
    (agent,) = found.agents
    assert (agent.command, agent.written_command) == (("claude",), ())
    assert agent.program == AgentProgram("claude")
    assert found.warnings == ()


def test_model_permissions_and_arguments_are_kept_as_they_are_written(here: Path) -> None:
    """Braces in arguments mean nothing."""
    (agent,) = read(
        here, 'kind = "claude"\nmodel = "opus"\npermissions = "edit"\nargs = ["--settings={}", "--x"]\ncount = 1'
    ).agents
    assert agent.program == AgentProgram("claude", "opus", Permissions.EDIT, ("--settings={}", "--x"))


@pytest.mark.parametrize(
    ("written", "command"),
    [("bin/claude", "{here}/bin/claude"), ("codex", "codex"), ("bin/{odd}", "{here}/bin/{{odd}}")],
)
def test_another_program_is_found_by_name_or_from_the_folder_of_the_file(
    here: Path, written: str, command: str
) -> None:
    """Like the program of a command; its braces are a name's."""
    (agent,) = read(here, f'kind = "claude"\nprogram = "{written}"').agents
    assert agent.command == (command.replace("{here}", str(here.resolve())),)


@pytest.mark.parametrize(
    ("lines", "key", "said"),
    [
        ('kind = "claud"', "kind", 'found "claud"; accepted: "command" or "python" or "service" or "claude"'),
        ('kind = "gemini"', "kind", 'found "gemini", whose program "gemini" is not there; accepted: a kind'),
        (
            'kind = "claude"\nprogram = "./gone"',
            "program",
            'found "./gone", which is not there; accepted: a',
        ),
        ('kind = "claude"\npermissions = "write"', "permissions", 'found "write"; accepted: "read" or "edit" or "all"'),
        ('kind = "claude"\nargs = "--x"', "args", "accepted: an array of texts"),
        ('kind = "claude"\nargs = [""]', "args[1]", "accepted: a text in quotes, not empty"),
        ('kind = "claude"\ncommand = ["sh"]', "command", "unknown key"),
        ('command = ["sh", "{prompt}"]\nmodel = "opus"', "model", "unknown key"),
        (
            'command = ["sh", "{prompt}"]\nmodel = "opus"',
            "model",
            'unknown key for kind "command"; model belongs to kind "claude" or "codex" or "opencode" or "gemini"',
        ),
        ('kind = "claude"\ntarget = "a:B"', "target", 'for kind "claude"; target belongs to kind "python"'),
        ('kind = "python"\ntarget = "a:B"\nargs = []', "args", "unknown key"),
        ('kind = "service"\ncommand = ["sh"]\ntriggers = [{queue = true}]\nprogram = "sh"', "program", "unknown key"),
    ],
)
def test_what_does_not_fit_the_kind_is_refused_with_its_place(here: Path, lines: str, key: str, said: str) -> None:
    """And with what is accepted."""
    with pytest.raises(FleetFileError) as refused:
        read(here, lines)
    assert f"agents.coder.{key}: " in str(refused.value)
    assert said in str(refused.value)


def test_every_key_is_part_of_the_meaning_and_a_default_is_not(here: Path) -> None:
    """So a change of the model is a difference of the plan, and a written default is none."""
    before = read(here, 'kind = "claude"').meaning
    assert read(here, 'kind = "claude"\nargs = []\naccount = "claude"').meaning == before
    lines = 'model = "opus"\npermissions = "all"\nargs = ["--x"]\nprogram = "bin/claude"\naccount = "work"'
    after = read(here, f'kind = "claude"\n{lines}').meaning
    assert describe_difference(before, after) == (
        "agents.coder.account: was claude, is work",
        'agents.coder.args: was absent, is ["--x"]',
        "agents.coder.model: was absent, is opus",
        "agents.coder.permissions: was absent, is all",
        'agents.coder.program: was absent, is "bin/claude"',
    )
    assert describe_difference(before, read(here, 'kind = "codex"').meaning) == (
        "agents.coder.account: was claude, is codex",
        "agents.coder.kind: was claude, is codex",
    )


USD = "budget = {usd = 5, session_usd = 1}"
SHARE = 'budget = {usd = 5, session_usd = 1, unreported = "share"}'
SHARE_ALONE = "budget = {session_usd = 1}"


@pytest.mark.parametrize(
    ("kind", "fleet", "agent", "task"),
    [
        ("codex", USD, "", ""),
        ("codex", SHARE, "", ""),
        ("codex", SHARE_ALONE, "budget = {usd = 5}", ""),
        ("codex", SHARE_ALONE, "", "budget = {usd = 5}"),
        ("silent", USD, "", ""),
    ],
)
@pytest.mark.usefixtures("silent")
def test_a_budget_in_dollars_needs_a_program_that_reports_dollars(
    here: Path, kind: str, fleet: str, agent: str, task: str
) -> None:
    """The budget is that of the fleet, the agent, or a task."""
    with pytest.raises(FleetFileError, match=f"agents: a budget limits kind {kind} in US dollars, .*accepted: "):
        read(here, f'kind = "{kind}"\ncount = 2\n{agent}', fleet=fleet, task=task)


@pytest.mark.parametrize(
    ("kind", "fleet"),
    [
        ("claude", USD),
        ("codex", "budget = {tokens = 5_000, session_tokens = 1_000}"),
        ("silent", SHARE),
    ],
)
@pytest.mark.usefixtures("silent")
def test_a_budget_that_can_be_kept_is_accepted(here: Path, kind: str, fleet: str) -> None:
    """Of a program that reports dollars; of tokens; and of a silent program that is charged its reservation."""
    assert read(here, f'kind = "{kind}"', fleet=fleet).budget.share.microusd in {0, 1_000_000}


class Silent(Command):
    """An adapter of a program that reports no cost."""

    name = "silent"
    reports = Reports.NOTHING

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return a command line."""
        return "claude", brief.prompt, "" if conversation is None else conversation.id


class Mute(Silent):
    """An adapter that makes no command line."""

    name = "mute"

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return no command line."""
        return super().argv(brief, conversation)[:0]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer two more adapters."""
    monkeypatch.setitem(registry.SHIPPED, "silent", Silent())
    monkeypatch.setitem(registry.SHIPPED, "mute", Mute())


@pytest.mark.usefixtures("silent")
def test_an_adapter_that_makes_no_command_line_is_an_error_of_the_file(here: Path) -> None:
    """Adapters are of other distributions, too."""
    with pytest.raises(FleetFileError, match=r"agents\.coder\.kind: the adapter mute makes no command line"):
        read(here, 'kind = "mute"')


def test_a_protocol_runs_the_program_that_the_file_names(here: Path) -> None:
    """Its arguments are those of the file, and agents of one program share an account."""
    pytest.importorskip("acp")
    (agent,) = read(here, 'kind = "acp"\nprogram = "bin/codex"\nargs = ["acp"]').agents
    assert agent.command == (str(here / "bin" / "codex"),)
    assert agent.program == AgentProgram("acp", arguments=("acp",), path="bin/codex")
    assert agent.account == "codex"


def test_a_protocol_without_a_program_is_refused(here: Path) -> None:
    pytest.importorskip("acp")
    with pytest.raises(FleetFileError, match=r"program: .*missing.*; accepted: the program that speaks the protocol"):
        read(here, 'kind = "acp"')


def test_a_protocol_whose_client_is_not_installed_is_refused_with_what_to_install(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finds_nothing(_name: str) -> None: ...

    monkeypatch.setattr(programs, "find_spec", finds_nothing)
    with pytest.raises(FleetFileError, match=r"not installed; accepted: after pip install 'lifefold\[acp\]'"):
        read(here, 'kind = "acp"\nprogram = "codex"')


@pytest.mark.parametrize(("kind", "near"), [("claud", "claude"), ("Codex", "codex"), ("pyton", "python")])
def test_of_a_mistyped_kind_only_the_kind_is_reported_with_the_nearest_one(here: Path, kind: str, near: str) -> None:
    """The kind decides which other keys are accepted, so they are not judged."""
    with pytest.raises(FleetFileError) as refused:
        read(here, f'kind = "{kind}"\nmodel = "opus"\npermissions = "edit"')
    (problem,) = [each for each in refused.value.problems if each.key.startswith("agents")]
    assert problem.key == "agents.coder.kind"
    assert problem.message.endswith(f'; did you mean "{near}"?')
    assert "session_timeout" not in str(refused.value)
