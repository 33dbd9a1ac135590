"""The table of a machine says what its document says, no more and no less."""

import re
from typing import Any

from lifefold.core.kernel import Machine
from lifefold.core.lifecycles import session, status
from lifefold.interpreters.views import markdown, plain, table_rows
from lifefold.interpreters.views.outline import arcs, name_of

DOCUMENT = """
Initializing | WorktreeReady | BuildingPrompt | None |
BuildingPrompt | PromptReady(prompt) | Spawning | StorePrompt(prompt) |
Spawning | SessionStarted(seq) | Running { session_seq: seq } | None (resets consecutive_errors to 0) |
Spawning | SessionExited(Error) | CoolingDown or Stopped | None or LogFatal (if threshold reached) |
Spawning | SessionExited(Timeout) | CoolingDown or Stopped | None or LogFatal (if threshold reached) |
Running | SessionExited(Success) | SessionComplete | None (resets consecutive_errors to 0) |
Running | SessionExited(Error) | CoolingDown or Stopped | None or LogFatal (if threshold reached) |
Running | SessionExited(Timeout) | CoolingDown or Stopped | None or LogFatal (if threshold reached) |
Running | UrgentMessage | Interrupting { session_seq } | CancelSession |
Interrupting | SessionExited(*) | BuildingPrompt | None (no error increment) |
Interrupting | GraceExceeded | BuildingPrompt | ForceStopSession |
SessionComplete | WorktreeReady | BuildingPrompt | IncrementSession (bumps session_seq) |
CoolingDown | BackoffElapsed | BuildingPrompt | None |
"""
"""The document's transition table, as it is printed."""

GLOBAL = {
    ("Running", "OperatorStop", "Stopped", "CancelSession"),
    ("Interrupting", "OperatorStop", "Stopped", "CancelSession"),
    ("ANY", "OperatorStop", "Stopped", "None"),
    ("ANY", "FatalError(msg)", "Stopped", "LogFatal"),
}
"""Its global transitions. OperatorStop: ``CancelSession if currently Running or Interrupting; None otherwise``."""


def read_document() -> list[tuple[str, ...]]:
    """Read the document's lines; one that gives two outcomes is two."""
    found: list[tuple[str, ...]] = []
    for line in DOCUMENT.strip().splitlines():
        source, event, targets, effects = (cell.strip() for cell in line.strip(" |").split("|"))
        targets, effects = re.sub(r" \{.*\}", "", targets), re.sub(r" ?\(.*\)", "", effects)
        found += [
            (source, event, to, effect) for to, effect in zip(targets.split(" or "), effects.split(" or "), strict=True)
        ]
    return found


def sections(text: str) -> dict[str, list[tuple[str, ...]]]:
    """Read a Markdown page of tables, without their heads."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for part in text.split("\n## ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("| ")]
        found[part.partition("\n")[0]] = [
            tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines[2:]
        ]
    return found


def test_the_table_of_session_is_the_documents() -> None:
    page = sections(markdown(session.machine))
    assert sorted(row[:4] for row in page["Transitions"]) == sorted(read_document())
    assert sorted(row[:4] for row in page["Global transitions"]) == sorted(GLOBAL)


def test_the_data_of_session_is_the_documents() -> None:
    data = sorted((r["from"], r["event"], r["to"], *(r["effects"] or ["None"])) for r in table_rows(session.machine))
    printed = [*read_document(), *GLOBAL]
    assert data == sorted((source, event.partition("(")[0], to, effect) for source, event, to, effect in printed)


def test_an_entry_says_its_condition_in_words() -> None:
    entries = [r for r in table_rows(session.machine) if (r["from"], r["event"]) == ("Spawning", "SessionExited")]
    assert entries[:2] == [
        {
            "from": "Spawning",
            "event": "SessionExited",
            "when": "Error and threshold reached",
            "to": "Stopped",
            "effects": ["LogFatal"],
        },
        {"from": "Spawning", "event": "SessionExited", "when": "Error", "to": "CoolingDown", "effects": []},
    ]


def test_a_star_is_no_condition() -> None:
    (entry,) = [r for r in table_rows(session.machine) if r["from"] == "Interrupting" and r["event"] == "SessionExited"]
    assert entry["when"] == ""


def test_there_is_one_entry_for_each_row_and_source(machine: Machine[Any]) -> None:
    expected = [
        (source, name_of(row.event), row.target_label)
        for row in machine.rows
        for source in (["ANY"] if row.sources is None else [str(s) for s in machine.states if s in row.sources])
    ]
    assert [(r["from"], r["event"], r["to"]) for r in table_rows(machine)] == expected


def test_the_page_has_every_row_once_and_no_broken_cell(machine: Machine[Any]) -> None:
    page = sections(markdown(machine))
    assert len(page["Transitions"]) + len(page.get("Global transitions", [])) == len(table_rows(machine))
    assert all(len({len(row) for row in rows}) == 1 for rows in page.values())


def test_the_page_says_what_goes_on_in_states() -> None:
    page = sections(markdown(session.machine))
    lives = "Spawning, Running, Interrupting"
    assert (lives, "RunSession", "SessionStarted, SessionExited", "SessionExited") in page["Activities"]
    assert [(row[0], row[1], row[2], row[4]) for row in page["Timers"]] == [
        ("Interrupting", "GraceExceeded", "grace", "keeps its deadline"),
        ("CoolingDown", "BackoffElapsed", "backoff", "keeps its deadline"),
    ]
    assert page["Postponed events"] == [("Spawning", "UrgentMessage")]
    assert page["Final states"] == [("Stopped",)]


def test_the_last_of_several_rows_for_an_event_is_said_to_be_otherwise() -> None:
    page = sections(markdown(session.machine))
    whens = {
        (row[0], row[1], row[2]): row[4] for rows in (page["Transitions"], page["Global transitions"]) for row in rows
    }
    assert whens["Spawning", "SessionExited(Error)", "Stopped"] == "threshold reached"
    assert whens["Spawning", "SessionExited(Error)", "CoolingDown"] == "otherwise"
    assert whens["Spawning", "SessionStarted(seq)", "Running"] == "is expected"
    assert whens["Running", "SessionExited(Success)", "SessionComplete"] == ""
    assert whens["Running", "OperatorStop", "Stopped"] == ""
    assert whens["ANY", "OperatorStop", "Stopped"] == "otherwise"


def test_a_terminal_gets_every_row_within_its_width(machine: Machine[Any]) -> None:
    text = plain(machine, width=150)
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    for entry in table_rows(machine):
        assert any(line.startswith(f"{entry['from']} {entry['event']}") and entry["to"] in line for line in lines), (
            entry
        )
    assert max(map(len, text.splitlines())) <= 150
    assert "\x1b" not in text


def test_a_line_that_calls_a_hook_names_it() -> None:
    """Of the coarse status: the table shows the line that begins work, and those that end it."""
    called = {
        (arc.row.event.__name__, str(arc.target), effect)
        for arc in arcs(status.draining)
        for effect in arc.effects
        if effect.startswith("CallHook")
    }
    assert called == {
        ("Spawn", "RUNNING", "CallHook(launch)"),
        ("Stop", "STOPPED", "CallHook(release)"),
        ("FatalError", "FAILED", "CallHook(release)"),
        ("TaskEnded", "STOPPED", "CallHook(release)"),
    }
