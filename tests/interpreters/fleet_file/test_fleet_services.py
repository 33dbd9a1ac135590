"""The guarantee: a service of a fleet file is what the file says, and whatever is no service is told with its place."""

from pathlib import Path

import pytest

from lifefold.core.lifecycles import process
from lifefold.effects import Changed, Cron, Every
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_file.meaning import describe_difference

FLEET = """
[fleet]
name = "desk"

[[agents]]
name = "web"
kind = "service"
command = ["sh", "-c", "true", "{{prompt}}"]
{keys}
"""

WORKS = """
[[agents]]
name = "coder"
command = ["sh", "-c", "true", "{prompt}"]

[[tasks]]
id = "T1"
prompt = "do it"
"""

QUEUE = "triggers = [{ queue = true }]\n"


def read(folder: Path, keys: str, more: str = "", *, watch: bool = True) -> Fleet:
    """Read a fleet file with one service that has these keys."""
    file = folder / "fleet.toml"
    file.write_text(FLEET.format(keys=keys) + more)
    return load(file, watch=watch)


def refused(folder: Path, keys: str, more: str = "", *, watch: bool = True) -> str:
    """Return what is said of a file that is refused."""
    with pytest.raises(FleetFileError) as error:
        read(folder, keys, more, watch=watch)
    return str(error.value)


def test_a_service_that_says_little_has_the_defaults_of_its_document(tmp_path: Path) -> None:
    """One run at a time, three failures in a row, no restart, in the fleet file's folder."""
    fleet = read(tmp_path, QUEUE)
    (web,) = fleet.services
    assert fleet.agents == ()
    assert web.limits == process.Limits()
    assert (web.triggers, web.takes_messages) == ((), True)
    assert fleet.place_of(web) == tmp_path
    assert fleet.warnings[0].endswith("no session_timeout: a run that hangs is never ended")


def test_every_kind_of_trigger_is_read_and_said_again(tmp_path: Path) -> None:
    """The same file means the same, and what differs is told in the file's own words."""
    written = [
        '{ every = "10m" }',
        '{ cron = "*/5  9-17 * * 1-5" }',
        '{ cron = "0 9 * * *", timezone = "Europe/Berlin" }',
        '{ path = "./inbox/" }',
        '{ path = "src/**/*.py" }',
        "{ queue = true }",
    ]
    fleet = read(tmp_path, f"triggers = [{', '.join(written)}]\n")
    (web,) = fleet.services
    assert web.triggers == (
        Every(600_000),
        Cron("*/5 9-17 * * 1-5"),
        Cron("0 9 * * *", "Europe/Berlin"),
        Changed("inbox"),
        Changed("src/**/*.py"),
    )
    assert web.takes_messages
    assert fleet.meaning == read(tmp_path, f"triggers = [{', '.join(written)}]\n").meaning
    other = read(tmp_path, QUEUE)
    (line,) = describe_difference(other.meaning, fleet.meaning)
    assert line.startswith("services.web.triggers: was ")


def test_the_life_of_a_service_is_what_its_keys_say(tmp_path: Path) -> None:
    """All of it goes into the plan."""
    (tmp_path / "there").mkdir()
    keys = (
        'restart_policy = "always"\nmax_restarts = 7\nrestart_backoff = "2s"\nmax_consecutive_failures = 4\n'
        'idle_timeout = "5s"\nmax_lifetime = "6s"\ndrain_timeout = "7s"\ndirectory = "there"\n'
    )
    fleet = read(tmp_path, QUEUE + keys)
    (plan,) = fleet.plan.services
    assert plan.limits == process.Limits(
        restart_policy="always",
        max_restarts=7,
        restart_backoff_ms=2_000,
        max_consecutive_failures=4,
        idle_timeout_ms=5_000,
        max_lifetime_ms=6_000,
        drain_timeout_ms=7_000,
    )
    assert fleet.place_of(fleet.services[0]) == tmp_path / "there"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("", "triggers is missing"),
        ("triggers = []\n", "accepted: an array of triggers"),
        ("triggers = [{ queue = false }]\n", "accepted: true"),
        ('triggers = [{ every = "10ms" }]\n', 'at least "1s"'),
        ("triggers = [{ queue = true }, { queue = true }]\n", "accepted: each trigger once"),
        ('triggers = [{ at = "9:00" }]\n', "accepted: every, cron, path or queue"),
        ('triggers = [{ every = "1m", queue = true }]\n', "accepted: a table such as"),
        ('triggers = [{ every = "1m", timezone = "UTC" }]\n', "accepted: a table such as"),
        ('triggers = [{ cron = "61 * * * *" }]\n', "accepted: a cron expression of five fields"),
        ('triggers = [{ cron = "61 * * * *" }]\n', "; '61' is not a valid minute"),
        ('triggers = [{ cron = "0 9 * 13 *" }]\n', "; '13' is not a valid month"),
        ('triggers = [{ every = "10ms" }, { queue = true }, { cron = "0 25 * * *" }]\n', "; '25' is not a valid hour"),
        ('triggers = [{ cron = "* * * * * *" }]\n', "accepted: a cron expression of five fields"),
        ('triggers = [{ cron = "* * */20 * 1L" }]\n', "accepted: a cron expression of five fields"),
        ('triggers = [{ cron = "* * * * *", timezone = "Mars" }]\n', "accepted: the name of a time zone"),
        ('triggers = [{ path = "../other" }]\n', "accepted: the path of a file"),
        ('triggers = [{ path = "**x.txt" }]\n', "** in it stands alone between two /"),
        ('triggers = [{ path = "docs/a**/x.txt" }]\n', "** in it stands alone between two /"),
        (f'{QUEUE}directory = "nowhere"\n', "which is not a folder"),
        (f"{QUEUE}concurrency = 2\n", "unknown key"),
        (f'{QUEUE}roles = ["a"]\n', "unknown key"),
        (f"{QUEUE}count = 2\n", "unknown key"),
        (f'{QUEUE}stall_timeout = "1m"\n', "unknown key"),
        (f'{QUEUE}restart_policy = "sometimes"\n', 'accepted: "never" or "on_failure" or "always"'),
    ],
)
def test_what_is_no_service_is_refused_with_what_is_accepted(tmp_path: Path, keys: str, words: str) -> None:
    """Among it is what only other agents have, and what is not there yet."""
    told = refused(tmp_path, keys)
    assert words in told
    assert "fleet.toml:" in told


def test_a_service_has_no_task_to_put_into_its_command(tmp_path: Path) -> None:
    """Nor has an agent of another kind what only services have."""
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET.format(keys=QUEUE).replace("{prompt}", "{task}"))
    with pytest.raises(FleetFileError, match=r'command\[4\]: found "\{task\}"; accepted: \{prompt\}'):
        load(file, watch=True)
    other = WORKS.replace("[[tasks]]", 'restart_policy = "always"\n\n[[tasks]]')
    assert "restart_policy: unknown key" in refused(tmp_path, QUEUE, other)
    other = WORKS.replace("[[tasks]]", "triggers = [{ queue = true }]\n\n[[tasks]]")
    assert "triggers: only a service has triggers" in (told := refused(tmp_path, QUEUE, other))
    assert "unknown key" not in told


def test_services_alone_are_for_a_fleet_that_is_kept_alive(tmp_path: Path) -> None:
    """A fleet ends with its tasks, and these need an agent."""
    assert "or lifefold run --watch, for services alone" in refused(tmp_path, QUEUE, watch=False)
    task = '[[tasks]]\nid = "T1"\nprompt = "do it"\n'
    assert "an agent that takes them" in refused(tmp_path, QUEUE, task)
    assert len(read(tmp_path, QUEUE, WORKS, watch=False).agents) == 1


def test_agents_and_services_have_names_of_their_own(tmp_path: Path) -> None:
    """People say them without saying which kind they mean."""
    assert "is given twice" in refused(tmp_path, QUEUE, WORKS.replace("coder", "web"))
