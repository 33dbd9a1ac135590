"""The guarantee: what `demo` and `init` write can be run at once, and nothing of anybody's is touched."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from lifefold.interpreters import demo
from lifefold.interpreters.demo import ScaffoldError, write_demo, write_init
from lifefold.interpreters.fleet_file import Fleet, expand, load
from lifefold.interpreters.fleet_file.model import Agent, AgentProgram
from lifefold.interpreters.fleet_runner.variables import environment


@pytest.fixture(autouse=True)
def _nobodys_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let git find no identity, and no repository around the temporary folder."""
    (tmp_path / "home").mkdir()
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))


def git(folder: Path, *arguments: str) -> str:
    program = shutil.which("git") or "git"
    done = subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run(command: list[str], folder: Path, env: dict[str, str]) -> int:
    done = subprocess.run(command, cwd=folder, env=os.environ | env, check=False, capture_output=True)
    return done.returncode


def verified(fleet: Fleet, folder: Path) -> list[str]:
    return [task.id for task in fleet.tasks if all(run(list(command), folder, {}) == 0 for command in task.verify)]


def test_the_package_has_these_names() -> None:
    assert demo.__all__ == ["ScaffoldError", "Written", "write_demo", "write_init"]
    assert all(hasattr(demo, name) for name in demo.__all__)


def test_the_demo_is_a_repository_with_one_commit_and_a_fleet_without_warnings(tmp_path: Path) -> None:
    path = write_demo(tmp_path / "demo")
    fleet = load(path)
    assert path == tmp_path / "demo" / "fleet.toml"
    assert (len(fleet.agents), len(fleet.tasks), fleet.warnings) == (3, 10, ())
    assert fleet.repository == (tmp_path / "demo").resolve()
    assert fleet.agents[0].command[0] == sys.executable
    assert git(path.parent, "rev-list", "--count", "main") == "1"
    assert git(path.parent, "status", "--porcelain") == ""
    assert {"agent.py", "fleet.toml", "textkit/slug.py"} <= set(git(path.parent, "ls-files").split())


def test_the_demos_tasks_can_be_verified_once_they_are_done_and_not_before(tmp_path: Path) -> None:
    fleet = load(write_demo(tmp_path / "demo"))
    assert verified(fleet, tmp_path / "demo") == []
    for task in fleet.tasks:
        # The same work without the waiting and the bad behaviour.
        prompt = re.sub(r"script: (take|fail|hang|deaf) .*|(?<=\.md) 1$", "", task.prompt, flags=re.MULTILINE)
        prompt = prompt.replace("draft docs/guide.md", "draft docs/guide.md 0")
        (tmp_path / "prompt").write_text(prompt, encoding="utf-8")
        session = {"prompt": prompt, "prompt_file": str(tmp_path / "prompt"), "task": task.id, "worktree": "."}
        assert run(expand(fleet.agents[0].command, **session), tmp_path / "demo", fleet.agents[0].env) == 0
        assert verified(replace(fleet, tasks=(task,)), tmp_path / "demo") == [task.id]
    changed = {line.split()[-1] for line in git(tmp_path / "demo", "status", "--porcelain").splitlines()}
    assert {path for path in changed if not path.startswith(("textkit/", "docs/", "CHANGES.md"))} == set()


def test_the_demo_needs_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ScaffoldError, match="is not empty"):
        write_demo(tmp_path)
    with pytest.raises(ScaffoldError, match=r"mine\.txt as a folder"):
        write_demo(tmp_path / "mine.txt")


def test_a_strange_folder_name_does_no_harm(tmp_path: Path) -> None:
    folder = tmp_path / 'a {task} "b"\\n é'
    fleet = load(write_demo(folder))
    assert Path(fleet.agents[0].env["LIFEFOLD_DEMO_STATE"]).parent.parent == folder
    session = {"prompt": "p", "prompt_file": "f", "task": "T", "worktree": "w"}
    assert expand(fleet.agents[0].command, **session)[1] == f"{folder}/agent.py"
    assert load(write_init(folder / "{x}").fleet_file).name == "x"


def test_init_makes_a_repository_where_there_is_none(tmp_path: Path) -> None:
    written = write_init(tmp_path / "new")
    fleet = load(written.fleet_file)
    assert (tmp_path / "new" / ".git").is_dir()
    assert [path.name for path in written.files] == ["fleet.toml", "agent.py", ".gitignore"]
    assert (fleet.name, fleet.repository, fleet.warnings) == ("new", (tmp_path / "new").resolve(), ())
    assert git(tmp_path / "new", "log", "--format=%s") == "A fleet of agents"
    assert git(tmp_path / "new", "status", "--porcelain") == ""
    assert len(written.notes) == 1


def test_init_commits_in_its_users_name_if_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gitconfig").write_text("[user]\n name = Ada\n email = ada@example.org\n[commit]\n gpgSign = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    write_init(tmp_path / "new")
    assert git(tmp_path / "new", "log", "--format=%an") == "Ada"


def test_init_leaves_what_lies_in_a_new_repository_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.txt").write_text("mine")
    written = write_init(tmp_path / "mine")
    assert git(tmp_path / "mine", "status", "--porcelain") == "?? mine.txt"
    assert "commit what your agents are to see" in written.notes[1]


def test_inits_agents_do_not_forget_errors_when_they_start(tmp_path: Path) -> None:
    (agent, _) = load(write_init(tmp_path / "new").fleet_file).agents
    assert agent.limits.reset_errors_on == "success"


def test_init_uses_the_repository_around_it_says_so_and_commits_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "sub").mkdir()
    written = write_init(tmp_path / "sub")
    assert not (tmp_path / "sub" / ".git").exists()
    assert written.repository == load(written.fleet_file).repository == tmp_path.resolve()
    assert f"inside the git repository {tmp_path.resolve()}, on branch ma" in written.notes[0]
    assert "merge into its branch" in written.notes[0]
    assert "has no commit yet" in written.notes[1]
    assert "__pycache__/ is now ignored by" in written.notes[2]
    assert git(tmp_path, "check-ignore", "sub/__pycache__/x.pyc") == "sub/__pycache__/x.pyc"
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "--allow-empty", "--message", "first")
    (tmp_path / "other").mkdir()
    assert len(write_init(tmp_path / "other").notes) == 1
    assert git(tmp_path, "ls-files") == ""


def test_init_has_compiled_files_ignored_in_every_worktree_and_keeps_the_rules_that_are_there(tmp_path: Path) -> None:
    """Merges of two agents that have run the same program do not conflict in them; it is done once, and told."""
    git(tmp_path, "init", "--quiet")
    exclude = tmp_path / ".git" / "info" / "exclude"
    exclude.write_text("*.mine")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "--allow-empty", "--message", "first")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        notes = write_init(tmp_path / name).notes
        assert [str(exclude) in each for each in notes] == ([False, True] if name == "one" else [False])
    assert exclude.read_text() == "*.mine\n__pycache__/\n"
    git(tmp_path, "worktree", "add", "--quiet", ".lifefold/tree")
    (tmp_path / ".lifefold" / "tree" / "__pycache__").mkdir()
    (tmp_path / ".lifefold" / "tree" / "__pycache__" / "x.pyc").touch()
    assert git(tmp_path / ".lifefold" / "tree", "status", "--porcelain") == ""


def test_init_says_so_where_it_cannot_have_compiled_files_ignored(tmp_path: Path) -> None:
    """With the rule, and where to put it."""
    git(tmp_path, "init", "--quiet")
    exclude = tmp_path / ".git" / "info" / "exclude"
    exclude.unlink(missing_ok=True)
    exclude.mkdir()
    (note,) = (each for each in write_init(tmp_path).notes if "__pycache__/" in each)
    assert note.startswith(f"Add __pycache__/ to {tmp_path / '.gitignore'} and commit that, or merges conflict: ")


def test_init_finds_the_repository_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "repository" / "sub").mkdir(parents=True)
    git(tmp_path / "repository", "init", "--quiet")
    (tmp_path / "link").symlink_to(tmp_path / "repository" / "sub")
    assert load(write_init(tmp_path / "link").fleet_file).repository == (tmp_path / "repository").resolve()


@pytest.mark.parametrize("name", ["fleet.toml", "agent.py"])
def test_init_overwrites_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / name).symlink_to("nowhere")
    with pytest.raises(ScaffoldError, match=f"{name} is there already"):
        write_init(tmp_path / "x")
    assert [path.name for path in (tmp_path / "x").iterdir()] == [name]


def test_inits_tasks_can_be_done_and_verified(tmp_path: Path) -> None:
    written = write_init(tmp_path / "new")
    fleet = load(written.fleet_file)
    for task in fleet.tasks:
        prompt = re.sub(r"script: take .*", "", task.prompt)
        session = {"prompt": prompt, "prompt_file": "", "task": task.id, "worktree": "."}
        assert run(expand(fleet.agents[0].command, **session), tmp_path / "new", {}) == 0
    assert verified(fleet, tmp_path / "new") == ["hello", "reply"]


def test_the_agents_that_init_suggests_load_once_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_init(tmp_path / "new").fleet_file
    content = re.sub(r"(?m)^# (?=\[\[agents|name =|kind =|permissions =|session_timeout =)", "", path.read_text())
    path.write_text(content)
    (tmp_path / "bin").mkdir()
    programs = ["claude", "codex", "opencode", "gemini", "aider"]
    for program in programs:
        (tmp_path / "bin" / program).touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    fleet = load(path)
    assert [agent.name for agent in fleet.agents] == ["agent-1", "agent-2", *programs]
    assert fleet.warnings == ()


def test_what_git_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bare").mkdir()
    git(tmp_path / "bare", "init", "--quiet", "--bare")
    with pytest.raises(ScaffoldError, match="not in its working tree"):
        write_init(tmp_path / "bare")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ScaffoldError, match="git is not on PATH"):
        write_init(tmp_path / "new")


def test_each_agent_that_is_ready_to_be_used_gets_what_it_logs_in_with(tmp_path: Path) -> None:
    """Who has a key in the environment takes the comment marks away, and it works."""
    write_init(tmp_path)
    text = (tmp_path / "fleet.toml").read_text()
    blocks = [f"# [[agents]]{block.partition('[[tasks]]')[0]}" for block in text.split("# [[agents]]")[1:]]
    agents = [tomllib.loads(re.sub("(?m)^# ", "", block))["agents"][0] for block in blocks]
    asked = {
        "claude": {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"},
        "codex": {"OPENAI_API_KEY", "CODEX_API_KEY"},
        "opencode": {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"},
        "gemini": {"GEMINI_API_KEY"},
        "aider": {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"},
    }
    around = {name: "value" for names in asked.values() for name in names}
    given = {
        each["name"]: asked[each["name"]]
        & environment(around, Agent("a", (), (), program=AgentProgram(each["kind"]))).keys()
        for each in agents
    }
    assert given == asked


def test_a_path_with_dots_names_the_folder_that_it_leads_to(tmp_path: Path) -> None:
    """``lifefold init ../notes`` names no ``..``, neither in its paths nor as the name of the fleet."""
    (tmp_path / "other").mkdir()
    written = write_init(tmp_path / "other" / ".." / "notes")
    assert (written.fleet_file, written.repository) == (tmp_path / "notes" / "fleet.toml", tmp_path / "notes")
    (tmp_path / "plans" / "sub").mkdir(parents=True)
    assert load(write_init(tmp_path / "plans" / "sub" / "..").fleet_file).name == "plans"


def test_the_initial_fleet_says_how_agents_can_ask(tmp_path: Path) -> None:
    """It names the table, and the table is accepted where the comment has it."""
    path = write_init(tmp_path / "notes").fleet_file
    text = path.read_text()
    assert text.count("# [fleet.questions]") == 1
    path.write_text(text.replace("# [fleet.questions]", "[fleet.questions]"))
    assert load(path).questions is not None
