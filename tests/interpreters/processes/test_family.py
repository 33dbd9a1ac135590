"""The family of an agent in its shim: processes in its group, and processes that have left it."""

import subprocess
import sys

import pytest

from lifefold.interpreters.processes.shim import proc

PROGRAM = """
import os
import signal

from lifefold.interpreters.processes.shim.agent import Family

go, stop = os.pipe()
agent = os.fork()
if agent == 0:
    os.read(go, 1)
    os._exit(0)
os.setpgid(agent, agent)
others = []
for group in (agent, 0):
    other = os.fork()
    if other == 0:
        os.close(stop)
        signal.pause()
    os.setpgid(other, group)
    others.append(other)
family = Family(agent)
os.write(stop, b".")
while not family.agent_dead:
    family.look()
family.reap_agent()
family.kill_rest()
for other in others:
    os.waitpid(other, 0)
print(family.escaped == others[1:], family.extinct())
"""


@pytest.mark.skipif(not proc.LINUX, reason="elsewhere those that have left the group are not found")
def test_a_process_in_the_group_is_not_reported_as_escaped() -> None:
    """Also after the agent was reaped, when the remaining processes are signalled one by one."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True True\n"
