"""The site: it builds without a warning, holds every page, links within itself, and loads nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--conf-dir", "docs", "--doctree-dir", str(folder / "trees")]
    command = [sys.executable, "-m", "sphinx", *options, "--builder", "html", ".", str(folder / "html")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return folder / "html"


class Addresses(HTMLParser):
    """What a page links to and what it loads; and the places in it."""

    def __init__(self, page):
        super().__init__()
        self.links, self.loads, self.places = [], [], set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("script", "img", "iframe", "link") and (found.get("src") or found.get("href")):
            self.loads.append(found.get("src") or found["href"])


def test_every_page_is_in_it(site):
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("proofs/*.md"), ROOT / "SECURITY.md"]
    assert len(pages) > 30
    for page in pages:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").exists(), page
    assert "docs/index.html" in (site / "index.html").read_text()
    assert not list(site.rglob("shared"))


def test_links_lead_to_a_page_and_a_place_in_it(site):
    pages = {page: Addresses(page) for page in site.rglob("*.html")}
    for page, found in pages.items():
        for link in found.links:
            if "://" in link:
                continue
            path, _, place = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page.name}: {link}"
            if place and target in pages:
                assert place in pages[target].places, f"{page.name}: {link}"


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert [address for address in Addresses(page).loads if "//" in address] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", style.read_text()), style.name


def test_every_command_and_every_public_name_is_in_it(site):
    import typer

    import dpcate
    from dpcate import cli

    commands = (site / "docs" / "reference" / "commands.html").read_text()
    for name in typer.main.get_command(cli.app).commands:
        assert f'id="dpcate-{name}"' in commands, name
    names = (site / "docs" / "reference" / "api.html").read_text()
    modules = {"__version__", "datasets", "errors"}
    for name in set(dpcate.__all__) - modules:
        assert f'id="dpcate.{name}"' in names, name
    for name in dpcate.datasets.__all__:
        assert f'id="dpcate.datasets.{name}"' in names or name == "Dataset", name


@pytest.mark.browser
def test_in_a_browser_nothing_leaves_and_nothing_complains(site, browser):
    artifacts = ROOT / "artifacts" / "browser"
    artifacts.mkdir(parents=True, exist_ok=True)
    for name in ("docs/index", "docs/tutorials/curator", "docs/reference/api"):
        tab = browser.new_page()
        complaints, asked = [], []
        tab.on("console", lambda message, said=complaints: said.append(message.text))
        tab.on("pageerror", lambda error, said=complaints: said.append(str(error)))
        tab.on("request", lambda request, urls=asked: urls.append(request.url))
        tab.goto((site / f"{name}.html").as_uri())
        for device, width in (("desktop", 1280), ("phone", 390)):
            tab.set_viewport_size({"width": width, "height": 844})
            tab.screenshot(path=artifacts / f"site-{Path(name).name}-{device}.png")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        assert all(url.startswith(("file:", "data:")) for url in asked)
        tab.close()
