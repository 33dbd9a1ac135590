"""A fleet whose agent program prints what Claude Code prints, for the tests of the operator's desk."""

from pathlib import Path

from fleet_sandbox import Sandbox

TALKER = r"""#!/bin/sh
say() { printf '{"type":"assistant","session_id":"c-%s","message":{"id":"m%s","content":[{"type":"text","text":"%s"}]}}\n' "$LIFEFOLD_TASK" "$1" "$2"; }
uses() { printf '{"type":"assistant","session_id":"c-%s","message":{"id":"t%s","content":[{"type":"tool_use","id":"u%s","name":"%s","input":{}}]}}\n' "$LIFEFOLD_TASK" "$1" "$1" "$2"; }
over() { printf '{"type":"user","session_id":"c-%s","message":{"content":[{"type":"tool_result","tool_use_id":"u%s","is_error":%s}]}}\n' "$LIFEFOLD_TASK" "$1" "$2"; }
ends() { printf '{"type":"result","session_id":"c-%s","is_error":%s,"result":"%s","total_cost_usd":0.25,"usage":{"input_tokens":1200,"output_tokens":340}}\n' "$LIFEFOLD_TASK" "$1" "$2"; }
say 1 "I look at $LIFEFOLD_TASK."
uses 1 Bash
over 1 true
printf 'not of the format: \033]0;title\007\033[31mred\033[0m\n'
gate="$COUNTS/$LIFEFOLD_TASK.gate"
echo "begun by $LIFEFOLD_TASK" > "$LIFEFOLD_TASK.txt"
if [ -p "$gate" ]; then cat "$gate"; say 2 "Through the gate."; fi
case $LIFEFOLD_TASK in fails*) ends true "I give up."; exit 1;; esac
echo "done by $LIFEFOLD_TASK" >> "$LIFEFOLD_TASK.txt"
ends false "All done."
"""  # noqa: E501 - lines of a format

VERIFY = 'verify = [["test", "-s", "{0}.txt"]]'
CAT = 'verify = [["cat", "{0}.txt"]]'


def talking(folder: Path, *tasks: str, gates: tuple[str, ...] = (), repository: bool = True) -> Sandbox:
    """Write a fleet of one agent that talks. Tasks named ``fails-…`` fail for good; verifications print the work."""
    sandbox = Sandbox(folder).prepare(*tasks, gates=gates, repository=repository)
    program = folder / "talker.sh"
    program.write_text(TALKER)
    program.chmod(0o755)
    text = sandbox.fleet.read_text()
    command = next(line for line in text.splitlines() if line.startswith("command = "))
    text = text.replace(command, f'kind = "claude"\nprogram = "{program}"')
    for task in tasks:
        text = text.replace(VERIFY.format(task), CAT.format(task))
        if task.startswith("fails"):
            text = text.replace(f'id = "{task}"', f'id = "{task}"\nmax_retries = 0')
    sandbox.fleet.write_text(text)
    return sandbox
