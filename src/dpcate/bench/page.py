"""One page for a bench: figures, tables, settings and versions in a single file that loads nothing."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from matplotlib.figure import Figure

from dpcate.bench.versions import environment
from dpcate.plots import picture

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem}img{max-width:100%}
.warning{color:#b00020;font-weight:600}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.8rem}
th,td{border-bottom:1px solid #ddd;padding:.25rem .5rem;text-align:left;vertical-align:top}
"""

Row = Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, words, a figure and a table, whichever there are."""

    heading: str
    text: str = ""
    warning: str = ""
    figure: Figure | None = None
    head: Row = ()
    rows: Iterable[Row] = ()

    def html(self) -> str:
        parts = [f"<h2>{escape(self.heading)}</h2>"]
        parts += [f'<p class="warning">{escape(self.warning)}</p>'] * bool(self.warning)
        parts += [f"<p>{escape(self.text)}</p>"] * bool(self.text)
        if self.figure is not None:
            image = base64.b64encode(picture(self.figure)).decode()
            parts.append(f'<img alt="{escape(self.heading)}" src="data:image/png;base64,{image}">')
        if self.head:
            parts.append(f'<div class="scroll"><table>{_row(self.head, "th")}')
            parts += [_row(row, "td") for row in self.rows]
            parts.append("</table></div>")
        return "\n".join(parts)


def page_html(title: str, introduction: str, sections: Iterable[Section], settings: Mapping[str, str]) -> str:
    """The page as text; settings and library versions stand at its end."""
    facts = Section(heading="Settings", head=("setting", "value"), rows=list(settings.items()))
    versions = Section(heading="Versions", head=("library", "version"), rows=list(environment().items()))
    body = "\n".join(section.html() for section in (*sections, facts, versions))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p>{escape(introduction)}</p>
{body}
</body></html>
"""


def _row(cells: Row, tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
