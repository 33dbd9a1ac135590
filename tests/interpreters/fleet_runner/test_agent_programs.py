"""Agents by kind: a fleet runs what an adapter says, and believes the agent's own word about its end.

The programs are scripts that print the recorded output of the real ones, and end as those did.
"""

import os
import re
import tracemalloc
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace

from agent_outcomes import OUTCOMES, TOTALS
from agent_recordings import FOLDER, recordings
from lifefold.core.fleet.worker import assignment, conversation, question
from lifefold.core.kernel import Aggregate, Entity, PersistentMap
from lifefold.core.lifecycles import session
from lifefold.core.policy.outcomes import Outcome, diagnosis_of
from lifefold.interpreters.adapters import Cost, Counted, Tokens, adapter_of
from lifefold.interpreters.adapters.reading import SENTENCE_CHARS
from lifefold.interpreters.fleet_file.model import Agent, AgentProgram
from lifefold.interpreters.fleet_runner import agent_programs, session_outcome
from lifefold.interpreters.fleet_runner.agent_programs import program_argv
from lifefold.interpreters.fleet_runner.redaction import NO_SECRETS, Secrets
from lifefold.interpreters.fleet_runner.session_facts import facts_of
from lifefold.interpreters.fleet_runner.session_outcome import ANY_AGENT, LINE_CHARS, exited, last_words
from lifefold.interpreters.fleet_runner.variables import environment
from lifefold.interpreters.processes import SessionExit, launch
from program_sandbox import ProgramSandbox
from session_scripts import script

TOTAL = Cost(Tokens(200, 80, 0, 14), 834)
SUCCESS = FOLDER / "claude" / "success.txt"


def is_limit(kind: str, recording: str) -> bool:
    """Tell whether a recording is of a limit: its agent waits for the end of the limit."""
    return OUTCOMES[kind][recording][0] is Outcome.LIMITED


LIMITS = [(kind, name) for kind, found in OUTCOMES.items() for name in found if is_limit(kind, name)]


class Run:
    """A fleet that has run every recording of one program but limits, each as the only session of an agent."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.sandbox = ProgramSandbox(folder)
        self.sandbox.cast(*(self.sandbox.agent(kind, name) for name in recordings(kind) if not is_limit(kind, name)))
        self.sandbox.run(code=1)
        self.ends = self.sandbox.ends()
        self.tasks = self.sandbox.tasks()


@pytest.fixture(name="run", scope="module", params=OUTCOMES)
def _run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp(request.param), request.param)


def test_every_recorded_session_has_its_outcome_and_its_sentence_in_the_log(run: Run) -> None:
    """A success closes the task; anything else fails it, also with status 0. A chosen conversation begins anew once."""
    for recording, (outcome, reason) in OUTCOMES[run.kind].items():
        if outcome is Outcome.LIMITED:
            continue
        name = recording.replace(".", "_")
        ends = run.ends[name]
        has_lost = outcome is Outcome.CONVERSATION_LOST and adapter_of(run.kind).chooses_conversation
        assert len(ends) == (2 if has_lost else 1), name
        end = ends[-1]
        if outcome is Outcome.SUCCESS:
            assert end["outcome"] == {"type": "Success"}, name
            assert run.tasks[name]["state"] == "CLOSED", name
            continue
        said = end["outcome"]
        assert said["type"] == "Error", name
        assert said["message"].startswith(reason[:LINE_CHARS]), name
        assert "{" not in said["message"], name
        diagnosis = diagnosis_of(outcome, recordings(run.kind)[recording].status)
        assert diagnosis is not None
        assert said["diagnosis"]["trouble"] == diagnosis.trouble, name
        assert run.tasks[name]["state"] == "FAILED", name


def test_every_recorded_session_has_its_cost_in_the_log_once(run: Run) -> None:
    """The total of the conversation is marked as one; without one, the total of the session."""
    for (kind, recording, counted), cost in TOTALS.items():
        if kind == run.kind and cost is not None and not is_limit(kind, recording):
            (end,) = run.ends[recording.replace(".", "_")]
            assert end["usage"] == usage(cost), recording
            assert end.get("is_total", False) is (counted is Counted.CONVERSATION), recording


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "name"), LIMITS)
async def test_every_recorded_limit_ends_its_session_with_its_sentence(tmp_path: Path, kind: str, name: str) -> None:
    """It is no error."""
    recording = recordings(kind)[name]
    (tmp_path / "output.log").write_bytes(recording.output)
    limited = ended(code=recording.status)
    end = exited(limited, await facts_of(adapter_of(kind), tmp_path, limited), NO_SECRETS, ANY_AGENT)
    assert isinstance(end.outcome, session.Limited)
    assert end.outcome.message.startswith(OUTCOMES[kind][name][1][:LINE_CHARS])


@pytest.mark.anyio
@pytest.mark.parametrize(("asks", "outcome"), [(True, session.Success), (False, session.Error)])
async def test_a_refusal_fails_a_session_only_if_no_operator_has_decided(
    tmp_path: Path, *, asks: bool, outcome: type[session.Outcome]
) -> None:
    """An operator who refuses a tool wants the agent to go on without it."""
    (tmp_path / "output.log").write_bytes(recordings("claude")["asked-and-refused"].output)
    end = ended(code=0)
    agent = replace(ANY_AGENT, asks=asks)
    called = exited(end, await facts_of(adapter_of("claude"), tmp_path, end), NO_SECRETS, agent).outcome
    assert type(called) is outcome


def test_a_task_of_a_limited_agent_is_done_by_an_agent_of_another_account(tmp_path: Path) -> None:
    """The limit counts no error and no failed attempt, and the agent is not stopped."""
    sandbox = ProgramSandbox(tmp_path)
    limited = sandbox.agent("claude", "limit", 'account = "one"')
    head, _, task = sandbox.agent("claude", "success", 'account = "two"').partition("[[tasks]]")
    both = [f"[[tasks]]{task.replace('success', name)}".replace(f'role = "{name}"', 'role = "limit"') for name in "ab"]
    agents = limited.partition("[[tasks]]")[0], head.replace('roles = ["success"]', 'roles = ["limit"]')
    sandbox.cast(*agents, *both).run()
    ends = sandbox.ends()
    assert [end["outcome"]["type"] for end in ends["limit"]] == ["Limited"]
    assert [end["outcome"]["type"] for end in ends["success"]] == ["Success", "Success"]
    assert [(each["state"], each["retries"]) for each in sandbox.tasks().values()] == [("CLOSED", 0)] * 2


def test_a_session_names_its_conversation_in_the_log(run: Run) -> None:
    """A later session can resume it."""
    (end,) = run.ends["success"]
    assert end["conversation"]


def usage(cost: Cost) -> dict[str, Any]:
    """Return a cost as the log has it: cached input is input."""
    tokens = cost.tokens
    read = tokens.input + tokens.cache_read + tokens.cache_write
    return {"cost_microusd": cost.microusd or 0, "input_tokens": read, "output_tokens": tokens.output}


HANGS = """#!/bin/sh
cat {output}
echo waits
exec sleep 600
"""


def test_a_session_that_is_out_of_time_is_charged_what_it_had_printed(tmp_path: Path) -> None:
    """Its end is the runner's, its cost is the agent's."""
    sandbox = ProgramSandbox(tmp_path)
    script = HANGS.format(output=FOLDER / "claude" / "killed.txt")
    sandbox.cast(sandbox.agent("claude", "hang", script=script).replace('"60s"', '"2s"'))
    sandbox.run(code=1)
    (end,) = sandbox.ends()["hang"]
    assert end["outcome"] == {"type": "Timeout", "message": "session_timeout of 2s is over"}
    assert end["usage"] == usage(Cost(Tokens(100, 40, 0, 1)))
    assert end["conversation"]


def test_an_adopted_session_is_read_from_its_beginning(tmp_path: Path) -> None:
    """A runner that was killed loses no fact, and the next one counts none twice."""
    sandbox = ProgramSandbox(tmp_path)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"#!/bin/sh\nhead -n 3 {SUCCESS}\nread word < {gate}\ntail -n +4 {SUCCESS}\necho done > adopted.txt\n"
    sandbox.cast(sandbox.agent("claude", "adopted", script=script))
    with sandbox.running() as run, gate.open("w") as opened:
        run.process.kill()
        run.process.wait()
        opened.write("go\n")
    sandbox.run()
    (end,) = sandbox.ends()["adopted"]
    assert (end["outcome"], end["is_total"], any(end["before"].values())) == ({"type": "Success"}, True, False)
    assert end["usage"] == usage(Cost(Tokens(100, 40, 0, 7), 417))


def test_work_of_an_agent_program_is_merged_and_that_of_a_denied_one_is_not(tmp_path: Path) -> None:
    """A denied session exits with 0; its task fails at once, with the reason, and without another try."""
    sandbox = ProgramSandbox(tmp_path)
    sandbox.cast(sandbox.agent("claude", "success"), sandbox.agent("claude", "denied"), repository=True)
    sandbox.settle('id = "denied"\n', 'id = "denied"\nfiles = ["denied.txt"]\n')
    printed = sandbox.run(code=1)
    assert "Write: Claude requested permissions" in printed
    assert sandbox.git("show", "main:success.txt") == "done\n"
    assert "denied.txt" not in sandbox.git("ls-tree", "--name-only", "main").splitlines()
    assert "Claude requested permissions" in sandbox.call("why", "denied").stdout


def test_the_command_line_has_model_permissions_arguments_and_the_rest_of_the_budget(tmp_path: Path) -> None:
    """All of it from the file, without placeholders."""
    sandbox = ProgramSandbox(tmp_path)
    lines = ('model = "opus"', 'permissions = "edit"', 'args = ["--add-dir={here}"]')
    fleet = "[fleet.budget]\nusd = 5\nsession_usd = 2\n"
    sandbox.cast(sandbox.agent("claude", "success", *lines), fleet=fleet)
    sandbox.run()
    *words, prompt = sandbox.argv("success")
    chosen = words.pop(4)
    assert re.fullmatch(r"--session-id=[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", chosen)
    assert words == [
        "-p", "--output-format", "stream-json", "--verbose", "--model=opus", "--permission-mode=acceptEdits",
        "--max-budget-usd=2.000000", "--add-dir={here}", "--",
    ]  # fmt: skip
    assert "Write success.txt" in prompt


CHANGES = """#!/bin/sh
printf '%s\\0' "$@" > {folder}/counts/"$LIFEFOLD_TASK".argv
[ "$LIFEFOLD_TASK" = gated ] && read word < {folder}/gate && cat {data}/codex/success.txt
[ "$LIFEFOLD_TASK" = later ] && cat {data}/opencode/success.txt
echo done > "$LIFEFOLD_TASK".txt
"""


def test_a_changed_kind_or_model_is_for_the_next_session(tmp_path: Path) -> None:
    """The session under way is read by the adapter with which it began."""
    sandbox = ProgramSandbox(tmp_path)
    os.mkfifo(tmp_path / "gate")
    script = CHANGES.format(folder=tmp_path, data=FOLDER)
    agent = sandbox.agent("codex", "gated", 'model = "opus"', 'account = "one"', script=script)
    later = agent.partition("[[tasks]]")[2].replace('id = "gated"', 'id = "later"\ndepends_on = ["gated"]')
    sandbox.cast(agent, f"[[tasks]]{later.replace('gated.txt', 'later.txt')}")
    with sandbox.running() as run:
        with (tmp_path / "gate").open("w") as opened:
            sandbox.settle('model = "opus"', 'model = "sonnet"').settle('kind = "codex"', 'kind = "opencode"')
            printed = sandbox.call("plan", str(sandbox.fleet), "--accept").stdout
            run.until("plan")
            opened.write("go\n")
        run.rest()
    assert "agents.gated.model: was opus, is sonnet" in printed
    assert "--model=opus" in sandbox.argv("gated")
    assert sandbox.argv("later")[:2] == ["run", "--format"]
    assert "--model=sonnet" in sandbox.argv("later")
    assert [end["outcome"] for end in sandbox.ends()["gated"]] == [{"type": "Success"}] * 2


def test_an_agent_program_gets_the_variables_that_it_logs_in_with_and_no_others() -> None:
    """By name, and by its kind; a command gets none of them."""
    around = {"ANTHROPIC_API_KEY": "a", "CLAUDE_CODE_OAUTH_TOKEN": "c", "OPENAI_API_KEY": "o", "GITHUB_TOKEN": "g"}
    claude = Agent("a", ("claude",), (), program=AgentProgram("claude"))
    codex = Agent("a", ("codex",), (), program=AgentProgram("codex"))
    acme = Agent("a", ("acme",), (), program=AgentProgram("acme"))
    assert sorted(environment(around, claude)) == ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"]
    assert sorted(environment(around, codex)) == ["OPENAI_API_KEY"]
    assert environment(around, acme) == environment(around, Agent("a", ("claude",), ())) == {}


CHOSEN = conversation.Conversation(conversation.State.CHOSEN, chooses=True, resumes=True, chosen="c7")
BEGUN = conversation.Conversation(conversation.State.BEGUN, chooses=True, resumes=True, named="c7")


@pytest.mark.parametrize(
    ("talk", "option"),
    [
        (None, None),
        (conversation.Conversation(), None),
        (CHOSEN, "--session-id=c7"),
        (BEGUN, "--resume=c7"),
    ],
    ids=["no-entity", "unnamed", "chosen", "begun"],
)
def test_a_conversation_of_the_worker_is_begun_or_resumed(
    talk: conversation.Conversation | None, option: str | None
) -> None:
    """Without one the session begins a conversation of its own."""
    known = {"assignment": Entity[Any]("assignment", assignment.Assignment())}
    if talk is not None:
        known[conversation.REF] = Entity(conversation.REF, talk)
    worker = Aggregate("worker/a", entities=PersistentMap(known))
    words = program_argv(Agent("a", ("my",), ()), AgentProgram("claude"), "do it", worker)
    assert words[0] == "my"
    assert [each for each in words if "session" in each or "resume" in each] == ([option] if option else [])


RESUMES = """#!/bin/sh
printf '%s\\n' "$@" >> {folder}/counts/words
if grep -q -e --resume= {folder}/counts/words
then cat {data}/claude/resumed.txt; echo done > resumes.txt
else cat {data}/claude/success.txt
fi
"""


def test_a_retry_resumes_the_conversation_and_its_cost_counts_once(tmp_path: Path) -> None:
    """The second session prints the total of the conversation, with the first session."""
    sandbox = ProgramSandbox(tmp_path)
    agent = sandbox.agent("claude", "resumes", script=RESUMES.format(folder=tmp_path, data=FOLDER))
    fleet = "[fleet.budget]\nusd = 5\nsession_usd = 2\n"
    sandbox.cast(agent.replace("max_retries = 0", "max_retries = 1"), fleet=fleet)
    sandbox.run()
    first, second = sandbox.ends()["resumes"]
    assert (first["usage"], second["usage"]) == (usage(Cost(Tokens(100, 40, 0, 7), 417)), usage(TOTAL))
    words = (tmp_path / "counts" / "words").read_text().splitlines()
    (chosen,) = (each for each in words if each.startswith("--session-id="))
    assert UUID(chosen.removeprefix("--session-id=")).version == 5
    assert f"--resume={first['conversation']}" in words
    assert first["conversation"] == second["conversation"]
    (budget,) = sandbox.json("budget")
    assert budget["spent"] == TOTAL.microusd


CHATS = """#!/bin/sh
printf '%s\\n' "$@" | grep -e chat- >> {folder}/counts/words
for word; do case $word in --chat-history-file=*) file=${{word#*=}} ;; --restore*) restores=yes ;; esac; done
if [ -s "$file" ] && [ "$restores" ]
then cat {data}/aider/resumed.txt; echo done > chats.txt
else cat {data}/aider/success.txt; echo chat > "$file"
fi
"""


def test_a_retry_restores_the_chat_of_a_program_that_prints_no_name_of_it(tmp_path: Path) -> None:
    """The command line of the session has the name, so the log has it, too."""
    sandbox = ProgramSandbox(tmp_path)
    agent = sandbox.agent("aider", "chats", script=CHATS.format(folder=tmp_path, data=FOLDER))
    sandbox.cast(agent.replace("max_retries = 0", "max_retries = 1"))
    sandbox.run()
    first, second = sandbox.ends()["chats"]
    assert UUID(first["conversation"]).version == 5
    assert second["conversation"] == first["conversation"]
    file = f"--chat-history-file=.aider.chat.{first['conversation']}.md"
    assert (tmp_path / "counts" / "words").read_text().splitlines() == [file, file, "--restore-chat-history"]
    assert sandbox.tasks()["chats"]["state"] == "CLOSED"


def test_the_price_of_its_model_turns_the_tokens_of_an_agent_into_money(tmp_path: Path) -> None:
    """The log, and the budget in US dollars, have the money."""
    sandbox = ProgramSandbox(tmp_path)
    sandbox.cast(sandbox.agent("codex", "success", 'model = "gpt"'), fleet="[fleet.budget]\nusd = 5\nsession_usd = 1\n")
    with sandbox.fleet.open("a") as file:
        file.write('\n[[prices]]\nmodel = "gpt"\ninput = 3\ncached_input = 1\noutput = 10\n')
    sandbox.run()
    money = 3 * 200 + 1_000 + 10 * 7  # fresh input, cached input, output
    (end,) = sandbox.ends()["success"]
    assert end["usage"] == {"cost_microusd": money, "input_tokens": 1_200, "output_tokens": 7}
    (budget,) = sandbox.json("budget")
    assert budget["spent"] == money


@pytest.mark.parametrize(("asks", "package"), [(True, True), (True, False), (False, True)])
def test_an_agent_program_gets_the_permission_tool_in_a_fleet_with_questions(
    monkeypatch: pytest.MonkeyPatch, *, asks: bool, package: bool
) -> None:
    """If the package of its server is installed: a tool that is not there would deny everything."""
    found = {"mcp": object()} if package else {}
    monkeypatch.setattr(agent_programs, "find_spec", found.get)
    known = {"assignment": Entity[Any]("assignment", assignment.Assignment())}
    if asks:
        known[question.REF] = Entity(question.REF, question.Questions())
    worker = Aggregate("worker/a", entities=PersistentMap(known))
    words = program_argv(Agent("a", ("my",), ()), AgentProgram("claude"), "do it", worker)
    assert ("--permission-prompt-tool=mcp__lifefold__permission" in words) is (asks and package)
    assert any(each.startswith("--mcp-config=") for each in words) is (asks and package)


def ended(outcome: str = "exited", code: int | None = 0) -> SessionExit:
    return SessionExit(outcome=outcome, at_ms=1_795_512_000_000, code=code, message="gone")  # type: ignore[arg-type]


@pytest.mark.anyio
@pytest.mark.parametrize("wrong", ["gone", "folder", "fifo"])
async def test_an_output_that_cannot_be_read_is_judged_by_the_exit_status(tmp_path: Path, wrong: str) -> None:
    """Agents can reach it."""
    if wrong == "fifo":
        os.mkfifo(tmp_path / "output.log")
    elif wrong == "folder":
        (tmp_path / "output.log").mkdir()
    facts = await facts_of(adapter_of("claude"), tmp_path, ended(code=3))
    end = exited(ended(code=3), facts, NO_SECRETS, ANY_AGENT)
    assert isinstance(end.outcome, session.Error)
    assert end.outcome.message == "ended with status 3, without a result"
    assert (end.usage, end.conversation, end.is_total) == (session.Usage(), "", False)


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["ended", "killed", "lease-expired", "lost", "spawn-failed"])
async def test_a_cause_of_the_runner_counts_before_the_word_of_the_agent(tmp_path: Path, how: str) -> None:
    """What the session has cost counts all the same."""
    (tmp_path / "output.log").write_bytes(recordings("claude")["success"].output)
    end = exited(
        ended(how, None), await facts_of(adapter_of("claude"), tmp_path, ended(how, None)), NO_SECRETS, ANY_AGENT
    )
    assert isinstance(end.outcome, session.Error)
    assert end.outcome.message == "gone"
    assert end.usage == session.Usage(417, 140, 7)


VALUE = "sk-secret-value-0123456789"


@pytest.mark.anyio
async def test_a_secret_in_the_sentence_is_hidden_also_if_it_is_cut(tmp_path: Path) -> None:
    """A part of a value is no value, so the end of a cut sentence is left out."""
    secrets = Secrets([("API_KEY", VALUE)])
    for before in (0, 10, *range(SENTENCE_CHARS - len(VALUE) - 12, SENTENCE_CHARS + 1)):
        line = {"type": "result", "is_error": True, "result": f"{'x' * before} {VALUE} {VALUE} {'y' * 500}"}
        (tmp_path / "output.log").write_bytes(msgspec.json.encode(line) + b"\n")
        end = exited(ended(code=1), await facts_of(adapter_of("claude"), tmp_path, ended(code=1)), secrets, ANY_AGENT)
        assert isinstance(end.outcome, session.Error)
        assert end.outcome.message
        assert "sk-s" not in end.outcome.message, before


@pytest.mark.anyio
async def test_a_refused_login_names_the_variables_that_the_agent_did_not_get(tmp_path: Path) -> None:
    """So that the operator can pass them on."""
    (tmp_path / "output.log").write_bytes(recordings("claude")["login"].output)
    facts = await facts_of(adapter_of("claude"), tmp_path, ended(code=1))
    lacking = session_outcome.Agent(lacks=lambda said: f"lacks {said[:7]}")
    end = exited(ended(code=1), facts, NO_SECRETS, lacking)
    assert isinstance(end.outcome, session.Error)
    assert end.outcome.message.endswith("(lacks Invalid)")


@pytest.mark.anyio
async def test_a_line_without_end_takes_no_memory(tmp_path: Path) -> None:
    """The line is passed over, and what follows is read."""
    success = recordings("claude")["success"].output
    with (tmp_path / "output.log").open("wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + success)
    tracemalloc.start()
    facts = await facts_of(adapter_of("claude"), tmp_path, ended())
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert facts.usage == session.Usage(417, 140, 7)
    assert most_bytes < 16 << 20


@pytest.mark.anyio
async def test_the_last_words_of_a_session_are_the_sentence_that_its_adapter_reads(tmp_path: Path) -> None:
    """Codex ends with a line of figures; its answer is before that. A session of a command has its last line."""
    process = await launch(tmp_path / "run", replace(script(f"cat {FOLDER}/codex/success.txt"), kind="codex"))
    assert (await process.wait()).code == 0
    assert await last_words(tmp_path / "run", NO_SECRETS) == "done"
    process = await launch(tmp_path / "other", script("echo well"))
    await process.wait()
    assert await last_words(tmp_path / "other", NO_SECRETS) == "well"
