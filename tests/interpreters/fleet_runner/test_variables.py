"""Environment variables: what processes of a fleet get of the runner's, and what a hint says of the others."""

from pathlib import Path

import pytest

from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_file.model import Agent, Service
from lifefold.interpreters.fleet_runner.variables import PASSED, environment, hint, untold

AROUND = {
    "PATH": "/bin", "HOME": "/home/me", "LC_TIME": "C", "XDG_CONFIG_HOME": "/home/me/.config", "XDG_TOKEN": "hidden",
    "ANTHROPIC_API_KEY": "sk-1", "AWS_REGION": "eu", "AWS_SECRET_ACCESS_KEY": "aws", "GITHUB_TOKEN": "gh",
    "GIT_DIR": "x",
}  # fmt: skip


@pytest.mark.parametrize("of", [Agent("a", (), ()), Service("a")])
def test_a_process_gets_the_usual_variables_and_no_others(of: Agent | Service) -> None:
    """No secret is among them, also not one that a glob would match."""
    assert sorted(environment(AROUND, of)) == ["HOME", "LC_TIME", "PATH", "XDG_CONFIG_HOME"]


def test_what_the_fleet_file_names_is_passed_by_name_or_glob() -> None:
    """Then come its values, and last what lifefold says itself."""
    of = Agent(
        "a", (), (), env={"HOME": "/home/other", "LIFEFOLD_TASK": "mine"}, env_pass=("AWS_*", "ANTHROPIC_API_KEY")
    )
    got = environment(AROUND, of, {"LIFEFOLD_TASK": "T1"})
    assert {name: got[name] for name in got.keys() - {"PATH", "LC_TIME", "XDG_CONFIG_HOME"}} == {
        "ANTHROPIC_API_KEY": "sk-1",
        "AWS_REGION": "eu",
        "AWS_SECRET_ACCESS_KEY": "aws",
        "HOME": "/home/other",
        "LIFEFOLD_TASK": "T1",
    }


def test_a_star_passes_everything() -> None:
    """For whom the allow-list is too much."""
    assert environment(AROUND, Agent("a", (), (), env_pass=("*",))) == AROUND


def test_what_is_passed_to_everybody_is_called_as_programs_call_it() -> None:
    """No name twice, and no secret by name."""
    assert len(set(PASSED)) == len(PASSED)
    assert not any("KEY" in name or "TOKEN" in name for name in PASSED)


@pytest.mark.parametrize(
    "said",
    [
        "Invalid API key · Please run /login",
        "401 Unauthorized",
        "Not logged in",
        "authentication_error: no credentials",
    ],
)
def test_an_agent_that_is_not_logged_in_is_told_which_variables_it_did_not_get(said: str) -> None:
    """What agents log in with comes first."""
    which, _, rest = hint(AROUND, Agent("a", (), ()), said).partition(" are ")
    assert which == "ANTHROPIC_API_KEY, AWS_SECRET_ACCESS_KEY, GITHUB_TOKEN, XDG_TOKEN"
    assert rest.startswith("set where lifefold runs, and not passed on; name those that it needs in env_pass")


def test_a_variable_that_the_agent_names_comes_first() -> None:
    """It knows what it lacks."""
    assert hint(AROUND, Agent("a", (), ()), "GITHUB_TOKEN is missing: please log in").startswith(
        "GITHUB_TOKEN, ANTHROPIC_API_KEY"
    )


@pytest.mark.parametrize(
    ("program", "names"),
    [("/usr/bin/claude", ["ANTHROPIC_API_KEY"]), ("codex", []), ("aider", ["ANTHROPIC_API_KEY"]), ("python", [])],
)
def test_a_known_agent_without_the_key_that_is_there_is_told_of(program: str, names: list[str], tmp_path: Path) -> None:
    """Before a session fails by that; not where the fleet file names it."""
    file = tmp_path / "fleet.toml"
    (tmp_path / "bin").mkdir()
    own = tmp_path / "bin" / program.rpartition("/")[2]
    own.touch(0o755)
    agent = f'[[agents]]\nname = "a"\ncommand = ["{own}", "{{prompt}}"]\n'
    file.write_text(f'[fleet]\nname = "f"\n{agent}[[tasks]]\nid = "T1"\nprompt = "x"\n')
    told = [*untold(load(file), AROUND)]
    assert [f'env_pass = ["{name}"]' in line for name, line in zip(names, told, strict=True)] == [True] * len(names)
    file.write_text(file.read_text().replace("[fleet]\n", '[fleet]\nenv_pass = ["ANTHROPIC_*"]\n'))
    assert not [*untold(load(file), AROUND)]


def test_there_is_no_hint_where_nothing_was_held_back_or_it_is_about_something_else() -> None:
    """It would mislead."""
    for said in ("SyntaxError: invalid syntax", "there is no log in /tmp", "line 401x of 4010", "catalogue in order"):
        assert not hint(AROUND, Agent("a", (), ()), said)
    assert not hint({"PATH": "/bin"}, Agent("a", (), ()), "Not logged in")
    assert not hint(AROUND, Agent("a", (), (), env_pass=("*",)), "Not logged in")
