"""Whatever can be looked at is found by its name, and a wrong name is answered with the right ones."""

import pytest

from lifefold.core.lifecycles import session
from lifefold.interpreters import views
from lifefold.interpreters.views import UnknownNameError, about, machine_named, machines, systems

LISTED = (
    "session session-windowed session-prompt-failures session-in-fleet session-supervised process"
    " process-promptise-1.5 process-by-hand process-by-hand-1.5 runtime runtime-sw4rm-agentpy runtime-graceful"
    " runtime-supervised runtime-watched status status-draining lease task task-bernstein-1.9 task-governed"
    " task-approval agent agent-supervised turn turn-completing-fails turn-in-fleet task-in-fleet worker_slot"
    " desired_state mailbox stall_detector steering output questions plan intake budget usage_meter restart_permit"
    " preemption_request supervisor invocation inbox trigger service_slot account quota change assignment conversation"
    " notifier announcer host-leases"
).split()


def test_the_public_names_are_these() -> None:
    assert views.__all__ == sorted(views.__all__)
    assert set(views.__all__) == set(
        "FORMATS UnknownNameError about dot draw machine_named machines markdown mermaid plain scxml systems"
        " table_rows xstate".split()
    )


def test_every_machine_is_listed_under_its_own_name() -> None:
    assert {name: machine.name for name, machine in machines().items()} == {name: name for name in machines()}
    assert list(machines()) == LISTED
    assert {name: system.name for name, system in systems().items()} == {"fleet": "fleet"}


def test_everything_listed_has_one_line_about_it() -> None:
    lines = about()
    assert list(lines) == [*machines(), *systems()]
    assert len(set(lines.values())) == len(lines)
    assert all(line and "\n" not in line for line in lines.values())


def test_a_name_is_found() -> None:
    assert machine_named("session") is session.machine


def test_an_unknown_name_is_answered_with_the_nearest_and_with_all() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown machine 'Sesion'; did you mean 'session'\? known are session, "
    ) as e:
        machine_named("Sesion")
    assert (e.value.nearest, e.value.known) == ("session", tuple(machines()))
    with pytest.raises(UnknownNameError, match="unknown machine 'xyzzy'; known are session, "):
        machine_named("xyzzy")
