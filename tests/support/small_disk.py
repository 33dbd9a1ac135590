"""A real file system with little room, which a test can fill; only root mounts one."""

import contextlib
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

needs_a_small_disk: Final = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")


@contextmanager
def small_disk(folder: Path, size: str = "1m") -> Generator[Path]:
    """Mount a file system of this size on a new folder; skip the test where that is not permitted."""
    folder.mkdir()
    if subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=False).returncode:
        pytest.skip("this machine lets no file system be mounted")
    try:
        yield folder
    finally:
        subprocess.run(["/bin/umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Write a file until there is no room left in a folder; return it: without it there is room again."""
    file = folder / "filling"
    with file.open("wb", buffering=0) as filling, contextlib.suppress(OSError):
        while filling.write(bytes(4_096)):
            pass
    return file
