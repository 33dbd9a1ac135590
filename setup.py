"""The one part of the build that pyproject.toml cannot say: every package under the three roots is shipped."""

from setuptools import find_packages, setup

ROOTS = ("core", "effects", "interpreters")
PACKAGES = [package for root in ROOTS for package in (root, *(f"{root}.{sub}" for sub in find_packages(root)))]

setup(packages=["lifefold", *(f"lifefold.{package}" for package in PACKAGES if package != "interpreters.public")])
