"""A JupyterLab of a test: its own folders, a port of loopback, a token, and a browser that may ask nothing else."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import nbformat
from playwright.sync_api import Browser, Locator, Page, expect

from browsing import WAIT_MS
from web_desk import WAIT_S

FORMAT: Final[Any] = nbformat
"""It has no types."""

_FOLDERS: Final = (
    "IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
)  # fmt: skip
_SETTINGS: Final = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
"""All cells are drawn, also those below the window, and nothing is asked of a network."""


class Lab:
    """A running JupyterLab: the folder of its notebooks, and a page of it."""

    def __init__(self, root: Path, base: str, token: str, page: Page) -> None:
        self.root = root
        self.page = page
        self.foreign: list[str] = []
        self._base: Final = base
        self._token: Final = token
        page.set_default_timeout(WAIT_MS)
        page.on("request", self._must_be_own)

    def _must_be_own(self, request: Any) -> None:
        if not str(request.url).startswith((self._base, self._base.replace("http", "ws", 1), "data:", "blob:")):
            self.foreign.append(request.url)

    def open(self, name: str) -> Locator:
        """Open a notebook of the folder, with nothing else beside it; return its panel."""
        self.page.goto(f"{self._base}lab/tree/{name}?token={self._token}&reset")
        panel = self.page.locator(".jp-NotebookPanel")
        expect(panel.locator(".jp-Cell").first).to_be_visible(timeout=WAIT_MS)
        return panel

    def write(self, name: str, *cells: str) -> Locator:
        """Write a notebook of code cells, and open it."""
        notebook = FORMAT.v4.new_notebook(
            cells=[FORMAT.v4.new_code_cell(each) for each in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        FORMAT.write(notebook, self.root / name)
        return self.open(name)


@contextmanager
def jupyter_lab(browser: Browser, folder: Path) -> Generator[Lab]:
    """Start a JupyterLab with an empty folder of notebooks; end it afterwards, with its kernels."""
    environment = os.environ | {name: str(folder / name.lower()) for name in _FOLDERS}
    for name, settings in _SETTINGS.items():
        path = folder / "jupyterlab_settings_dir" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))
    root, token = folder / "notebooks", secrets.token_hex()
    root.mkdir()
    command = (
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0", f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={token}",
        "--LabApp.extension_manager=readonly",
    )  # fmt: skip
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            base = _address(server, folder)
            context = browser.new_context(viewport={"width": 1_400, "height": 1_000})
            lab = Lab(root, base, token, context.new_page())
            yield lab
            context.close()
            assert lab.foreign == []
        finally:
            server.terminate()


def _address(server: "subprocess.Popen[bytes]", folder: Path) -> str:
    """Return the address that the server has written down."""
    until = time.monotonic() + WAIT_S
    while server.poll() is None and time.monotonic() < until:
        for path in (folder / "jupyter_runtime_dir").glob("jpserver-*.json"):
            text = path.read_text()
            if text.rstrip().endswith("}"):
                return str(json.loads(text)["url"])
        time.sleep(0.1)
    raise AssertionError(f"JupyterLab does not listen:\n{(folder / 'log').read_text()}")
