"""The code in the documents runs, and what they name exists."""

import re
from pathlib import Path

import pytest

import dpcate

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


EXAMPLES = [
    pytest.param(page, example, marks=marks, id=page.name)
    for page in PAGES
    for language, marks in [("python", ()), ("python-peers", pytest.mark.peers)]
    for example in blocks(page, language)
]


@pytest.mark.filterwarnings("ignore:calibration='paper'")
@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_examples_run(page, example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(example, page.name, "exec"), {})
    if "release.json" in example:
        assert (tmp_path / "release.json").exists()
        assert capsys.readouterr().out.startswith("[")


def test_what_the_documents_say_shows_a_difference_exists():
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "paper.md").read_text())
    assert len(named) > 15
    for path in named:
        assert (ROOT / path).exists(), path


def test_the_schema_in_the_readme_loads():
    (text,) = blocks(ROOT / "README.md", "toml")
    schema = dpcate.Schema.from_toml(text)
    assert list(schema.covariates) == ["age", "sex"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_release_has_the_version_of_the_package():
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert version.group(1) == dpcate.__version__
    assert f"## {dpcate.__version__}" in (ROOT / "CHANGELOG.md").read_text()
