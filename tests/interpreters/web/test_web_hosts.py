"""The hosts of a fleet on several machines, on its page and in the stream."""

from pathlib import Path
from typing import Any

import anyio
import msgspec

from lifefold.interpreters.fleet_runner.blocked_merges import Wait
from lifefold.interpreters.fleet_runner.hosts import HOST, HostSaid, Pool, SessionThere
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.web.fleet_pages import fleet_page
from lifefold.interpreters.web.followed_log import FollowedLog
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.rendering import html

SAID = HostSaid("m1.example", 7, 1, 60_000_000, room=4, pools=(Pool("default", 4, 1),))


def speaks(log: Path, name: str, **more: Any) -> None:
    """Let a host say something."""
    said = msgspec.structs.replace(SAID, **more)
    with SqliteStore.peek(log) as store:
        anyio.run(store.say, HOST + name, msgspec.json.encode(said).decode())


def page(followed: FollowedLog, seq: int | None = None) -> tuple[Any, str]:
    """Return the page of a fleet, and its HTML."""
    made = fleet_page(View(followed, seq))
    values: dict[str, Any] = {
        "nonce": "n",
        "now_ms": made.at.at_ms,
        "here": "/",
        "query": {},
        "has_reports": False,
        "keys": {},
    }
    return made, html("fleet.html", made, values)


def test_the_page_of_a_fleet_has_its_hosts(log: Path) -> None:
    """With the same words as ``lifefold hosts --json``, and with the evidence of the processes on them."""
    with FollowedLog("fleet", log) as followed:
        followed.take()
        made, text = page(followed)
        assert made.hosts == ()
        assert "Hosts of" not in text
        waits = (Wait("ann", "waits to begin its work: another file", 1, 2),)
        speaks(log, "one", used=1, agents=("ann",), sessions=(SessionThere("ann", 77, 5),), waits=waits)
        speaks(log, "two", refuses="another plan")
        assert followed.take()
        made, text = page(followed)
        assert [(each.name, each.state, each.room, each.used) for each in made.hosts] == [
            ("one", "at work", 4, 1),
            ("two", "at work", 4, 0),
        ]
        assert made.agents[0].evident.startswith("process 77 is alive on one")
        assert any("another file" in each for each in made.troubles)
        assert "host two takes no work: another plan" in made.troubles
        assert "Hosts of" in text
        assert "at work, takes no work" in text
        made, text = page(followed, 3)
        assert made.hosts == ()


def test_browsers_are_told_of_a_host_that_changes_and_not_of_each_word(log: Path) -> None:
    """A host speaks often, and says mostly the same."""
    speaks(log, "one")
    with FollowedLog("fleet", log) as followed:
        followed.take()
        speaks(log, "one")
        assert not followed.take()
        speaks(log, "one", is_draining=True)
        assert followed.take()
        (known,) = followed.of_hosts
        assert known[:2] == ("one", "draining")
