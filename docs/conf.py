"""The site. Its sources are the project's own pages where they stand, so links work here and on a Git host alike."""

import re

import typer
from typer.cli import get_docs_for_click

from dpcate import __version__, cli

project = "dpcate"
release = version = __version__
copyright = "the dpcate developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "src/dpcate/privacy/proofs/*.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = ["docs/conf.py", "docs/_templates", "site", ".*", "tests", "demo", "artifacts"]

myst_heading_anchors = 3
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "furo"
html_title = f"dpcate {__version__}"
html_additional_pages = {"index": "start.html"}
templates_path = ["_templates"]
html_copy_source = False
html_show_sphinx = False


def add_commands(app, docname, source):
    """Below what is written about the command line, all that the commands say about themselves."""
    if docname == "docs/reference/commands":
        command = typer.main.get_command(cli.app)
        with typer.Context(command, info_name="dpcate") as context:
            text = get_docs_for_click(obj=command, ctx=context, name="dpcate")
        text = text.replace("```console\n$ ", "```text\n")
        source[0] += re.sub(r"^#", "##", text, flags=re.MULTILINE)


def setup(app):
    app.connect("source-read", add_commands)
