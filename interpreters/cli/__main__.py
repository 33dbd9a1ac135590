"""``python -m lifefold.interpreters.cli`` is the same as ``lifefold``."""

import sys

from lifefold.interpreters.cli.app import main

sys.exit(main())
