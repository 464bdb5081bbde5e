"""The library's proof pages as text for a report: a reader without the library can check the claim."""

import re
from importlib.resources import files

from markdown_it import MarkdownIt

from dpcate.release import Release

_ALWAYS = ("gaussian", "composition", "splitting")  # what every release page leans on
_PAGES = {
    page.name.removesuffix(".md"): page
    for page in files("dpcate").joinpath("privacy", "proofs").iterdir()
    if page.name.endswith(".md")
}
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\.md\)")


def is_known(name: str) -> bool:
    """Whether this version of the library holds the page that a release names."""
    return name in _PAGES


def needed(release: Release) -> list[str]:
    """The page of the whole release, then those of its bounds, then what all of them lean on."""
    diagnosed = ["diagnostics"] if release.diagnostics else []
    names = [release.proof, *diagnosed, *(charge.proof for charge in release.charges), *_ALWAYS]
    return [name for name in dict.fromkeys(names) if is_known(name)]


def title(name: str) -> str:
    return _PAGES[name].read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")


def as_html(name: str) -> str:
    """The page without its title; links to other pages become their names."""
    text = _PAGES[name].read_text(encoding="utf-8").split("\n", 1)[1]
    return MarkdownIt("commonmark", {"html": False}).enable("table").render(_LINK.sub(r"\1", text))
