"""The documentation as a site: the pages of this folder, and a reference made of the public names and of the parser.

``make site`` builds it, with every warning as an error. Nothing in it needs a network or another host.
"""

import inspect
import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent

project = "lifefold"
version = release = version_of("lifefold")
project_copyright = "the lifefold contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["certificates"]
myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"lifefold {release}"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
nitpicky = True
