"""The command lines of the adapters say what a brief says."""

import json

import pytest

from lifefold.interpreters.adapters import Brief, Conversation, Permissions, adapter_of
from lifefold.interpreters.adapters.adapter import resume_argv
from lifefold.interpreters.adapters.mcp_config import PERMISSION_TOOL, SERVER, mcp_config

NEW = Conversation("0b5f8f4e-3c1d-4c58-9a51-000000000001")
BEGUN = Conversation(NEW.id, begun=True)
CLAUDE = ("claude", "-p", "--output-format", "stream-json", "--verbose")
CODEX = ("codex", "exec", "--json", "--skip-git-repo-check")
OPENCODE = ("opencode", "run", "--format", "json", "--print-logs", "--log-level", "ERROR")
GEMINI = ("gemini", "--output-format=stream-json")
AIDER = (
    "aider", "--no-pretty", "--no-stream", "--no-check-update", "--no-show-release-notes", "--no-auto-commits",
    "--no-dirty-commits",
)  # fmt: skip
CHAT = f"--chat-history-file=.aider.chat.{NEW.id}.md"


@pytest.mark.parametrize(
    ("name", "brief", "conversation", "argv"),
    [
        ("claude", Brief("Fix"), None, (*CLAUDE, "--", "Fix")),
        ("claude", Brief("Fix"), NEW, (*CLAUDE, f"--session-id={NEW.id}", "--", "Fix")),
        ("claude", Brief("Fix"), BEGUN, (*CLAUDE, f"--resume={NEW.id}", "--", "Fix")),
        (
            "claude",
            Brief(
                "Fix",
                "opus",
                Permissions.EDIT,
                ("--add-dir", "x"),
                budget_microusd=1_250_000,
                turns=9,
                permission_tool="mcp__lifefold__permission",
            ),
            None,
            (
                *CLAUDE,
                "--model=opus",
                "--permission-mode=acceptEdits",
                "--permission-prompt-tool=mcp__lifefold__permission",
                "--max-budget-usd=1.250000",
                "--max-turns=9",
                "--add-dir",
                "x",
                "--",
                "Fix",
            ),
        ),
        (
            "claude",
            Brief("Fix", permission_tool="mcp__lifefold__permission", mcp_config="{}", mcp_server="lifefold"),
            None,
            (
                *CLAUDE,
                "--mcp-config={}",
                "--allowedTools=mcp__lifefold",
                "--permission-prompt-tool=mcp__lifefold__permission",
                "--",
                "Fix",
            ),
        ),
        ("codex", Brief("Fix"), NEW, (*CODEX, "--", "Fix")),
        ("codex", Brief("-"), BEGUN, (*CODEX, "resume", NEW.id, "--", "-\n")),
        (
            "codex",
            Brief("Fix", "gpt", Permissions.READ, ("--search",)),
            BEGUN,
            (*CODEX, "--model=gpt", "-c", 'sandbox_mode="read-only"', "--search", "resume", NEW.id, "--", "Fix"),
        ),
        ("opencode", Brief("Fix\nit"), None, (*OPENCODE, "--title=Fix it", "--", "Fix\nit")),
        (
            "opencode",
            Brief("Fix", "a/b", Permissions.ALL),
            BEGUN,
            (*OPENCODE, f"--session={NEW.id}", "--model=a/b", "--auto", "--", "Fix"),
        ),
        ("gemini", Brief("Fix"), NEW, (*GEMINI, f"--session-id={NEW.id}", "--prompt=Fix")),
        (
            "gemini",
            Brief("Fix", "pro", Permissions.EDIT),
            BEGUN,
            (*GEMINI, f"--resume={NEW.id}", "--model=pro", "--approval-mode=auto_edit", "--prompt=Fix"),
        ),
        ("aider", Brief("Fix"), None, (*AIDER, "--message=Fix")),
        ("aider", Brief("Fix"), NEW, (*AIDER, CHAT, "--message=Fix")),
        (
            "aider",
            Brief("Fix", "m", Permissions.ALL),
            BEGUN,
            (*AIDER, CHAT, "--restore-chat-history", "--model=m", "--yes-always", "--message=Fix"),
        ),
        ("command", Brief("Fix {this}", arguments=("sh", "-c", "x={prompt}")), None, ("sh", "-c", "x=Fix {this}")),
    ],
)
def test_a_command_line_says_what_the_brief_says(
    name: str, brief: Brief, conversation: Conversation | None, argv: tuple[str, ...]
) -> None:
    assert adapter_of(name).argv(brief, conversation) == argv


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude", ("--permission-mode=plan", "--permission-mode=acceptEdits", "--permission-mode=bypassPermissions")),
        ("codex", ('sandbox_mode="read-only"', 'sandbox_mode="workspace-write"', 'sandbox_mode="danger-full-access"')),
        ("opencode", ("--agent=plan", None, "--auto")),
        ("gemini", ("--approval-mode=plan", "--approval-mode=auto_edit", "--approval-mode=yolo")),
        ("aider", ("--chat-mode=ask", "--yes-always", "--yes-always")),
    ],
)
def test_permissions_are_in_the_words_of_the_program(name: str, words: tuple[str | None, ...]) -> None:
    """By default the program's own settings decide."""
    default = adapter_of(name).argv(Brief("Fix"), None)
    for permissions, word in zip((Permissions.READ, Permissions.EDIT, Permissions.ALL), words, strict=True):
        argv = adapter_of(name).argv(Brief("Fix", permissions=permissions), None)
        assert [each for each in argv if each not in default and each != "-c"] == ([word] if word else [])


def test_the_server_of_a_session_gets_its_variables_by_name() -> None:
    """No argument of a process has the token."""
    found = json.loads(mcp_config(("python", "-m", "lifefold"), ("LIFEFOLD_TOKEN",)))
    server = found["mcpServers"][SERVER]
    assert (server["command"], server["args"]) == ("python", ["-m", "lifefold", "mcp"])
    assert server["env"] == {"LIFEFOLD_TOKEN": "${LIFEFOLD_TOKEN:-}"}
    assert server["alwaysLoad"] is True
    assert f"mcp__{SERVER}__permission" == PERMISSION_TOOL


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("claude", ("claude", f"--resume={NEW.id}")),
        ("codex", ("codex", "resume", "--no-daemon", NEW.id)),
        ("opencode", ("opencode", f"--session={NEW.id}")),
        ("gemini", ("gemini", f"--resume={NEW.id}")),
        ("aider", ("aider", CHAT, "--restore-chat-history", "--no-auto-commits", "--no-dirty-commits")),
        ("command", ()),
    ],
)
def test_a_person_resumes_a_conversation_at_a_terminal(name: str, argv: tuple[str, ...]) -> None:
    """Without the options of unattended sessions; a plain command has no conversation."""
    assert resume_argv(adapter_of(name), BEGUN) == argv
