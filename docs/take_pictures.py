"""Takes the pictures of docs/fleet/browser.md: a small fleet runs, and Chromium looks at its desk. `make pictures`.

The counterexample is that of a session with a property that does not hold.

The fleet is real: three scripted agents in a new repository. The pictures differ from one run to the next in their
times, so they are taken anew only when pages change.
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from lifefold.interpreters.web.server import Opened, opened

FOLDER: Final = Path(__file__).parent / "fleet" / "pictures"
CHROMIUM: Final = Path("/usr/bin/chromium")
HELD: Final = 4
"""The exit code of a run that only an operator can move on."""

FLEET: Final = """
[fleet]
name = "shop"
repository = "."

[[agents]]
name = "coder"
count = 3
session_timeout = "1m"
command = ["sh", "-c", '''
echo "reading the task $LIFEFOLD_TASK"
echo "# $LIFEFOLD_TASK" > "$LIFEFOLD_TASK.md"
echo "written by $LIFEFOLD_AGENT" >> "$LIFEFOLD_TASK.md"
echo "wrote $LIFEFOLD_TASK.md"
sleep 1
''']

[[tasks]]
id = "catalogue"
prompt = "Write the catalogue of the shop."
verify = [["grep", "-n", "catalogue", "catalogue.md"]]

[[tasks]]
id = "basket"
prompt = "Write the basket, which keeps what a customer chooses."
verify = [["grep", "-n", "basket", "basket.md"]]
depends_on = ["catalogue"]
approval = "merge"

[[tasks]]
id = "payment"
prompt = "Write the payment with invoices."
verify = [["grep", "-n", "invoice", "payment.md"]]
max_retries = 1

[[tasks]]
id = "search"
prompt = "Write the search over the catalogue."
verify = [["test", "-s", "search.md"]]
depends_on = ["catalogue"]

[[tasks]]
id = "report"
prompt = "Write the report about sales."
verify = [["test", "-s", "report.md"]]
depends_on = ["payment"]
"""

BROKEN: Final = """
from lifefold.core.kernel import always
from lifefold.core.lifecycles import session

machine = session.machine.with_properties(
    always("no session runs at night", lambda entity: entity.state is not session.State.RUNNING)
)
"""


def main(folder: Path = FOLDER) -> None:
    """Run the fleet, and take the pictures into a folder."""
    if not CHROMIUM.exists():
        sys.exit(f"{CHROMIUM} is missing: apt-get install chromium")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = str(Path(name) / "state")
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        shop = Path(name) / "shop"
        log = _run(shop)
        report = _report(shop)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
            with _served(logs=[log]) as desk:
                _take(browser, desk, folder)
            with _served(reports=[report]) as desk:
                page = _page(browser, desk, 1_100, 800)
                page.goto(f"{desk.address.partition('/login')[0]}/reports/report/trace?step=2")
                page.screenshot(path=folder / "trace.png")
            browser.close()


def _run(shop: Path) -> Path:
    """Run the fleet until an operator must decide; return its log."""
    shop.mkdir()
    (shop / "fleet.toml").write_text(FLEET)
    me = ("-c", "user.name=shop", "-c", "user.email=shop@localhost")
    for words in (("init", "-q", "-b", "main"), ("add", "--all"), (*me, "commit", "-qm", "The shop begins")):
        subprocess.run(["git", "-C", str(shop), *words], check=True)
    command = [sys.executable, "-m", "lifefold.interpreters.cli", "run", "fleet.toml", "--no-live", "--no-wait"]
    code = subprocess.run(command, cwd=shop, check=False, stdout=subprocess.DEVNULL).returncode
    if code != HELD:
        message = f"the fleet has ended with {code}, and nothing waits for approval"
        raise RuntimeError(message)
    return shop / ".lifefold" / "shop.db"


def _report(shop: Path) -> Path:
    """Check a session with a property that does not hold; return the report."""
    (shop / "nightly.py").write_text(BROKEN)
    command = [sys.executable, "-m", "lifefold.interpreters.cli", "check", "nightly:machine", "--json"]
    done = subprocess.run(command, cwd=shop, check=False, stdout=subprocess.PIPE)
    (shop / "report.json").write_bytes(done.stdout)
    return shop / "report.json"


@contextmanager
def _served(logs: Sequence[Path] = (), reports: Sequence[Path] = ()) -> Generator[Opened]:
    with opened(logs, port=0, reports=reports) as desk:
        thread = threading.Thread(target=desk.run)
        thread.start()
        try:
            yield desk
        finally:
            desk.leave()
            thread.join()


def _take(browser: Browser, desk: Opened, folder: Path) -> None:
    base = desk.address.partition("/login")[0]
    page = _page(browser, desk, 1_100, 800)
    page.get_by_text("the work of basket").click()
    page.locator("pre.diff").wait_for()
    page.screenshot(path=folder / "overview.png")
    for name, path in (("board", "/board"), ("task", "/tasks/payment"), ("timeline", "/timeline"), ("log", "/log")):
        page.goto(f"{base}/fleets/shop{path}")
        page.screenshot(path=folder / f"{name}.png")
    page.goto(f"{base}/fleets/shop/agents/coder-1?at=40")
    page.screenshot(path=folder / "past.png", full_page=True, clip={"x": 0, "y": 0, "width": 1_100, "height": 1_100})
    dark = _page(browser, desk, 400, 800, scheme="dark")
    dark.screenshot(path=folder / "narrow.png")


def _page(browser: Browser, desk: Opened, width: int, height: int, scheme: str = "light") -> Page:
    """Open a window at what waits; wait until the log is read."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(desk.address)
    page.locator("main table").wait_for()
    return page


if __name__ == "__main__":
    main()
