"""The documents are followed word by word, they show what is printed, and what they name exists."""

import re
from pathlib import Path

import pytest
from blocks import RUN, Block, blocks, commands
from follow import Reader
from shown import require_shown

import dpcate

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PROOFS = sorted((ROOT / "src" / "dpcate" / "privacy" / "proofs").glob("*.md"))


def tries():
    """Each page with what is always there, and once more with each other thing that some of its blocks need."""
    for page in PAGES:
        found = blocks(page)
        for need in sorted({block.needs or "" for block in found}):
            chosen = [block for block in found if block.needs in (None, need)]
            marks = [pytest.mark.peers, pytest.mark.filterwarnings("ignore::FutureWarning")] if need == "peers" else []
            name = page.relative_to(ROOT).as_posix() + (f", {need}" if need else "")
            if any(block.language in RUN for block in chosen):
                yield pytest.param(chosen, need, marks=marks, id=name)


@pytest.mark.filterwarnings("ignore:calibration='paper'")
@pytest.mark.parametrize(("chosen", "need"), tries())
def test_followed_word_by_word(chosen, need, tmp_path, monkeypatch, request):
    environment = {"DPCATE_LEDGER": request.getfixturevalue("postgres_url")} if need == "postgres" else {}
    if need == "opacus":
        pytest.importorskip("opacus")
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    reader = Reader(tmp_path, **environment)
    for block in chosen:
        reader.follow(block)


def test_shown_output_is_compared():
    require_shown("a  ... 1.5 z", "a b\nc 1.9   z\n", within="0.5")
    require_shown("[0.11 0.92]", "[0.1  1.  ]", within="0.1")
    require_shown("━━ 3 rows, 1.5e-3", "━━━━━ 3 rows, 0.0016", within="20%")
    for shown, printed, within in [
        ("a 1.5", "a 1.5001", None),
        ("a 1.5", "a 2.1", "0.5"),
        ("3 rows", "4 rows", "5"),
        ("1.5 b", "1.5 c", "5"),
        ("", "said", None),
        ("1.5e-3", "0.0019", "20%"),
    ]:
        with pytest.raises(AssertionError):
            require_shown(shown, printed, within)


def test_what_is_typed_and_what_is_shown():
    block = Block("console", "$ one \\\n>   two\nshown\n$ three\n", {})
    assert commands(block) == [("one \\\n  two", "shown\n"), ("three", "")]


def test_marks_are_read_and_nothing_goes_untried(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n<!-- output; within: 3 -->\n```text\n1.0\n```\n```sh\nls\n```\n")
    shown, run = blocks(page)
    assert (shown.marks, run.marks) == ({"output": "", "within": "3"}, {})
    for wrong in ("```bash\nls\n```\n", "<!-- sometimes -->\n```sh\nls\n```\n", "- x\n  ```sh\n  ls\n  ```\n"):
        page.write_text(wrong)
        with pytest.raises(AssertionError):
            blocks(page)


def test_a_reader_notices_what_fails(tmp_path):
    reader = Reader(tmp_path)
    reader.follow(Block("toml", "x = 1\n", {"file": "a.toml"}))
    reader.follow(Block("console", "$ cat a.toml\nx = 1\n$ false\n", {"exit": "1"}))
    for wrong in (Block("sh", "false\ntrue\n", {}), Block("console", "$ echo a\nb\n", {})):
        with pytest.raises(AssertionError):
            reader.follow(wrong)


def test_what_the_documents_say_shows_a_difference_exists():
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "paper.md").read_text())
    assert len(named) > 15
    for path in named:
        assert (ROOT / path).exists(), path


def test_the_make_targets_that_documents_name_exist():
    named = {name for page in PAGES for name in re.findall(r"`make ([a-z-]+)`", page.read_text())}
    assert {"demo", "test", "docs"} <= named
    assert named <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("page", [*PAGES, *PROOFS], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_release_has_the_version_of_the_package():
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert version.group(1) == dpcate.__version__
    assert f"## {dpcate.__version__}" in (ROOT / "CHANGELOG.md").read_text()
