"""The page of an agent or a service: asked, believed, evident; its lifecycles; output, conversation, cost, commands."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lifefold.core.fleet import service
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.desk.elsewhere import host_of, where
from lifefold.interpreters.desk.history import SessionRecord, attempt_of
from lifefold.interpreters.explain.accounts import balances
from lifefold.interpreters.explain.task_words import OF_TASKS
from lifefold.interpreters.fleet_runner.hosts import Host
from lifefold.interpreters.web.journal import Choice
from lifefold.interpreters.web.moments import View, cost
from lifefold.interpreters.web.printed import printed_by, sessions_of, text_of
from lifefold.interpreters.web.structs import Action, Agent, AgentPage, Mark, PastSession

MOST_SESSIONS: Final = 50
"""The latest sessions on the page of an agent."""

MOST_LINES: Final = 60
"""The last transitions on the page of an agent or of a task."""

PICTURES: Final[Mapping[str, str]] = {"session": "session-in-fleet", "turn": "turn-in-fleet", "task": "task-in-fleet"}
"""The names of pictures that differ from the names of their machines: the profiles of a fleet."""

FIRST: Final = ("session", "turn", "assignment", "desired_state")
"""The machines whose pictures come first."""


class UnknownName(Exception):
    """An agent, a task or a machine that is not there."""


def agent_page(view: View, name: str, session: int = 0) -> AgentPage:
    """Return the page of an agent; ``session`` 0 is its last one. Raises ``UnknownName``."""
    found = next((each for each in view.agents() if each.status.name == name), None)
    if found is None:
        message = f"there is no agent {name!r}"
        raise UnknownName(message)
    is_service = found.status.kind == service.KIND
    of = view.there[f"{service.KIND if is_service else worker.KIND}/{name}"]
    is_now = view.moment.is_now
    sessions = tuple(each for each in sessions_of(view.folder, name) if is_now or each <= found.status.sessions)
    shown = session if session in sessions else sessions[-1] if sessions else 0
    records = view.log.sessions.of(name, view.moment.seq)
    why_not = _why_not(records, shown, view.hosts, is_now=is_now)
    printed, is_cut = printed_by(view.folder, name, shown, view.secrets) if not why_not else ((), False)
    return AgentPage(
        view.at(),
        found,
        tuple(marks(of)),
        tuple(each for each in balances(view.there) if each.whose == "agent" and each.name == name),
        tuple(each for each in view.waits if name in each.names or any(_is_of(part, name) for part in each.names)),
        tuple(_actions(found)) if is_now else (),
        sessions,
        shown,
        text_of(view.folder.prompt(name, shown), view.secrets) if shown else "",
        printed,
        is_cut,
        why_not or ("" if printed else "Nothing was printed."),
        tuple(_past(view, each) for each in records[-MOST_SESSIONS:])[::-1],
        max(0, len(records) - MOST_SESSIONS),
        tuple(view.log.journal.chosen(Choice(agent=name), before=view.moment.seq + 1, most=MOST_LINES))[::-1],
    )


def _why_not(records: Sequence[SessionRecord], shown: int, hosts: Sequence[Host], *, is_now: bool) -> str:
    """Return why the output of a session cannot be shown; empty if it can.

    The file of a session that went on at a past position has more by now, or may have. One that had ended is as it was.
    """
    if not shown and records:
        said = where(records[-1], host_of(records[-1], hosts))
        return f"{said[0].upper()}{said[1:]}."
    if not shown:
        return "There is no output of a session here."
    if is_now or any(each.number == shown and each.ended_ms for each in records):
        return ""
    return "The session went on at this position, and its output has no positions: the page of now shows it."


def _past(view: View, of: SessionRecord) -> PastSession:
    """Return a session of an agent, with the attempt that it belongs to and the end of its claim."""
    claims = view.log.claims.of(of.task, view.moment.seq)
    claim = next((each for each in claims if each.number == of.claim), None)
    ended = ": ".join(filter(None, (of.outcome, of.reason))) if of.ended_ms else ""
    became = (
        "" if claim is None else ": ".join(filter(None, (OF_TASKS.get(claim.outcome, claim.outcome), claim.reason)))
    )
    attempt, spent = attempt_of(claims, of.claim), cost(of.cost)
    return PastSession(of.number, of.turn, of.task, attempt, of.claim, of.began_ms, of.ended_ms, ended, became, spent)


def _is_of(question: str, agent: str) -> bool:
    return question.startswith(f"{agent}/Q")


def marks(of: Aggregate) -> Iterator[Mark]:
    """Yield the present state of each machine of a worker or a service, those that say most first."""
    refs = sorted(of.entities, key=lambda ref: (FIRST.index(ref) if ref in FIRST else len(FIRST), ref))
    for ref in refs:
        entity = of.entities[ref]
        machine = ref.partition(":")[0]
        yield Mark(ref, PICTURES.get(machine, machine), entity.state, entity.entered_ms)


def _actions(agent: Agent) -> Iterator[Action]:
    name, wanted = agent.status.name, agent.status.desired_state
    if wanted == desired_state.State.STOP or agent.status.state == "Stopped":
        return
    yield Action("Send", {"command": "send", "name": name}, "its session is interrupted", "text", is_optional=False)
    if wanted == desired_state.State.PAUSE:
        yield Action("Resume", {"command": "resume", "names": [name]}, "it goes on")
    else:
        yield Action("Pause", {"command": "pause", "names": [name]}, "its session is interrupted", "reason")
    if agent.status.kind != service.KIND:
        if agent.status.level:
            command = {"command": "trust", "name": name, "move": "promote"}
            yield Action("Promote", command, "it may do what the next level may", "reason", is_optional=False)
        yield Action("Drain", {"command": "stop", "names": [name], "how": "drain"}, "it stops after its task")
    yield Action("Stop", {"command": "stop", "names": [name]}, "it stops for good")
