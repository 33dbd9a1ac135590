"""The program: ``python -I -S __main__.py RUN_DIRECTORY``. Its exit status is one of those in ``program``."""

# pathlib is slow to import. The shim runs from its folder, with relative imports, because importing lifefold would
# import the whole package.
# ruff: noqa: PTH100, PTH120, TID252
import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # last: it must not shadow the library
    __package__ = "shim"

    from .program import main

    sys.exit(main(sys.argv))
