"""The fenced blocks of a page, with what comments before them say about them.

A comment right before a block, `<!-- key: value; key -->`, is seen by no reader and tells how the block is tried:

file: NAME      the block is the content of a file: it is written, not run
output          the block shows what the block before it printed
within: 12      numbers with a decimal point may be this far from those shown (`within: 20%`: by this part)
exit: 3         the last command of the block ends with this code
needs: peers    the block runs only where the extra `peers`, the package `opacus` or a `postgres` server is there
"""

import re
from dataclasses import dataclass
from pathlib import Path

RUN = {"python", "sh", "console"}
SHOWN = {"toml", "json", "text", "{toctree}", "{eval-rst}"}
MARKS = {"file", "output", "within", "exit", "needs"}

_BLOCK = re.compile(
    r"(?P<comments>(?:^<!--[^\n]*-->\n\s*)*)^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    marks: dict[str, str]

    @property
    def needs(self) -> str | None:
        return self.marks.get("needs")


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order; one that nobody would try is an error."""
    text = page.read_text()
    found = [
        Block(match["language"], match["text"], _marks(match["comments"], page)) for match in _BLOCK.finditer(text)
    ]
    assert len(found) * 2 == len(re.findall(r"^\s*```", text, flags=re.MULTILINE)), f"{page}: a fence stands alone"
    for block in found:
        assert block.language in RUN | SHOWN, f"{page}: no block has the language {block.language!r}"
    return found


def commands(block: Block) -> list[tuple[str, str]]:
    """What is typed after each `$ ` of a console block, and the lines shown below it."""
    pairs: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], ""))
        elif pairs and pairs[-1][0].endswith("\\") and not pairs[-1][1]:
            pairs[-1] = (f"{pairs[-1][0]}\n{line.removeprefix('> ')}", "")
        else:
            assert pairs, "a console block begins with '$ '"
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]}{line}\n")
    return pairs


def _marks(comments: str, page: Path) -> dict[str, str]:
    marks = {}
    for comment in re.findall(r"<!--(.*?)-->", comments):
        for part in comment.split(";"):
            key, _, value = part.partition(":")
            marks[key.strip()] = value.strip()
    assert set(marks) <= MARKS, f"{page}: unknown marks {set(marks) - MARKS}"
    return marks
