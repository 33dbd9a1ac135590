"""The recorded output of real agent programs, as an operator sees it: each tool with what it is used on."""

import pytest

from agent_recordings import recordings
from lifefold.interpreters.adapters import Now, adapter_of
from lifefold.interpreters.desk.output_lines import OutputLine, OutputReader

SUBJECTS = {
    ("gemini", "failing-command"): "run_shell_command: echo 'AssertionError: 401 Unauthorized'; exit 1",
    ("opencode", "failing-command"): "bash: echo 'AssertionError: 401 Unauthorized'; exit 1",
    ("claude", "failing-command"): "Bash: echo 'AssertionError: 401 Unauthorized'; exit 1",
    ("codex", "failing-command"): (
        "command_execution: /bin/bash -lc \"echo 'AssertionError: 401 Unauthorized'; exit 1\""
    ),
}


def shown(program: str, name: str) -> list[OutputLine]:
    found = recordings(program)[name]
    reader = OutputReader(adapter_of(program), lambda: Now(1_795_000_000_000, 0))
    return [*reader.take(0, found.output), *reader.finish(found.status)]


@pytest.mark.parametrize(("program", "name"), sorted(SUBJECTS))
def test_a_tool_is_shown_with_its_command_or_its_file(program: str, name: str) -> None:
    """An operator sees what is run, and not only that something is."""
    tools = [each.text for each in shown(program, name) if each.kind == "tool"]
    assert SUBJECTS[program, name] in tools


@pytest.mark.parametrize("program", ["aider", "claude", "codex", "gemini", "opencode"])
def test_each_recording_is_shown_in_printable_lines_with_one_end(program: str) -> None:
    """No line of a program's own format is left over as text, and the last line is the end."""
    for name in recordings(program):
        lines = shown(program, name)
        assert [each.kind for each in lines].count("end") == 1
        assert lines[-1].kind == "end"
        assert all(each.line().isprintable() for each in lines)
        assert not any(each.text.startswith('{"') for each in lines if each.kind == "text")
