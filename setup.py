"""What pyproject.toml cannot say: the packages under the three roots, and that a build begins anew."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOTS = ("core", "effects", "interpreters")
PACKAGES = [package for root in ROOTS for package in (root, *(f"{root}.{sub}" for sub in find_packages(root)))]


class FreshBuild(build_py):
    """A build without the modules of an earlier version of the clone, which pip leaves in ``build/``.

    A package that has become a module would hide that module.
    """

    def run(self) -> None:
        """Remove the earlier build, and build."""
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib, "lifefold"), ignore_errors=True)
        super().run()


setup(
    packages=["lifefold", *(f"lifefold.{package}" for package in PACKAGES if package != "interpreters.public")],
    cmdclass={"build_py": FreshBuild},
)
