"""The widgets of a notebook as a kernel sends them: the messages that every front end gets, Visual Studio Code as well.

A real kernel runs the cells, and no front end. So these tests show what a front end is given, and not what it does.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from lifefold.core.lifecycles import session
from lifefold.interpreters.notebook import player, scrubber
from lifefold.interpreters.notebook.play import Play
from web_desk import WAIT_S

jupyter_client = pytest.importorskip("jupyter_client", reason="it is missing: pip install 'lifefold[test]'")
jupyter_paths = pytest.importorskip("jupyter_core.paths", reason="it is missing: pip install 'lifefold[test]'")

VIEW: Final = "application/vnd.jupyter.widget-view+json"
"""The type of an output that a front end shows by a widget."""

PLAYER: Final = """
from lifefold.core.lifecycles import session
from lifefold.interpreters.notebook.player import play
play(session.machine)
"""
SCRUBBER: Final = f"""
from pathlib import Path
from lifefold.core import fleet
from lifefold.core.lifecycles import session
from lifefold.interpreters.notebook import History
from lifefold.interpreters.notebook.scrubber import Scrubber
history = History.read(fleet.system, Path({str(Path(__file__).parents[3] / "notebooks" / "a-run.jsonl")!r}).read_text())
Scrubber(session.machine, history.stops("worker/agent-1", "session"))
"""

FRONT_ENDS: Final = {PLAYER: player, SCRUBBER: scrubber}

ELSEWHERE: Final = re.compile(r"\bimport\b|\bfetch\b|https?:|XMLHttpRequest|\beval\b")
"""What loads something, or is forbidden where scripts are guarded."""


class Kernel:
    """A kernel with the messages that it has sent."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, cell: str) -> list[dict[str, Any]]:
        """Return what the kernel sends while it runs a cell."""
        asked = self.client.execute(cell)
        found: list[dict[str, Any]] = []
        while True:
            message = self.client.get_iopub_msg(timeout=WAIT_S)
            if message["parent_header"].get("msg_id") == asked:
                found.append(message)
                if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                    return found

    def told(self, comm: str, state: dict[str, Any], key: str) -> Any:
        """Change the state of a widget as a front end does, and return the value that the kernel answers with."""
        data: dict[str, Any] = {"method": "update", "state": state, "buffer_paths": []}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", {"comm_id": comm, "data": data}))
        while True:
            message = self.client.get_iopub_msg(timeout=WAIT_S)
            content = message["content"]
            if message["msg_type"] == "comm_msg" and content["comm_id"] == comm:
                update = content["data"]
                if update["method"] == "update" and key in update["state"]:
                    return update["state"][key]


@pytest.fixture(name="kernel", scope="module")
def _kernel() -> Iterator[Kernel]:
    manager, client = jupyter_client.manager.start_new_kernel(startup_timeout=WAIT_S)
    try:
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def shown(kernel: Kernel, cell: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the output of a cell by its types, and the state of the widget that it names."""
    messages = kernel.run(cell)
    (output,) = (each["content"]["data"] for each in messages if each["msg_type"] == "execute_result")
    opened = {each["content"]["comm_id"]: each["content"] for each in messages if each["msg_type"] == "comm_open"}
    of = opened[output[VIEW]["model_id"]]
    assert of["target_name"] == "jupyter.widget"
    return output, of["data"]["state"]


@pytest.mark.parametrize("cell", FRONT_ENDS, ids=["player", "scrubber"])
def test_an_output_has_the_widget_and_the_picture_for_a_front_end_without_widgets(kernel: Kernel, cell: str) -> None:
    """One output has both, and the text, so that a front end takes the best that it can show."""
    output, _ = shown(kernel, cell)
    assert output.keys() == {VIEW, "image/svg+xml", "image/png", "text/plain"}
    assert output["image/svg+xml"].startswith("<svg")
    assert output["text/plain"].strip()


@pytest.mark.parametrize("cell", FRONT_ENDS, ids=["player", "scrubber"])
def test_a_widget_brings_its_whole_front_end_and_its_module_is_installed(kernel: Kernel, cell: str) -> None:
    """The module is anywidget's, in the folder where front ends look for the modules of a kernel."""
    _, state = shown(kernel, cell)
    assert state["_esm"] == Path(FRONT_ENDS[cell].__file__ or "").with_suffix(".js").read_text()
    assert not ELSEWHERE.search(state["_esm"])
    assert state["_model_module"] == state["_view_module"] == "anywidget"
    folders = [Path(each, "anywidget", "index.js") for each in jupyter_paths.jupyter_path("nbextensions")]
    assert any(each.is_file() for each in folders)


def test_a_button_is_answered_by_the_world_after_its_input(kernel: Kernel) -> None:
    """Through the kernel's own messages, as a front end sends and gets them."""
    output, state = shown(kernel, PLAYER)
    begun = Play.of(session.machine)
    assert state["shown"]["tree"] == list(begun.tree())
    answer = kernel.told(output[VIEW]["model_id"], {"asked": ["give", 1, 1]}, "shown")
    after = begun.give(begun.choices()[1])
    assert (answer["now"], answer["tree"], answer["text"]) == (1, list(after.tree()), after.text())
