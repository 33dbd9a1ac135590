"""Makes docs/live.svg: the live display of the demonstration as it stands some seconds in. Run from the checkout."""

import io
import re
import tempfile
from pathlib import Path

import anyio
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from lifefold.interpreters.cli import demo_message
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.logs import default_log
from lifefold.interpreters.cli.picture import Picture
from lifefold.interpreters.cli.watched import OfRunner
from lifefold.interpreters.demo.project import write_demo
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner

MOMENT_S = 11.3
WIDTH, HEIGHT = 118, 22
NO_REMOTE_FONTS = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


async def draw() -> str:
    """Run the demonstration up to the moment and return the picture."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = load(write_demo(Path(folder) / "demo"))
        runner = await Runner.open(fleet, default_log(fleet.source, fleet.name))
        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
        account = Account()
        runner.observers.append(account.observe)
        picture = Picture(OfRunner(runner), account)
        demo_message.send(runner)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.run)
            await anyio.sleep(MOMENT_S)
            console.print(picture.draw(WIDTH, HEIGHT))
            runner.leave()
        runner.close()
    return console.export_svg(title="lifefold run fleet.toml", code_format=NO_REMOTE_FONTS)


if __name__ == "__main__":
    Path(__file__).with_name("live.svg").write_text(anyio.run(draw))
