"""HTML from plain values: everything is escaped here, and a page can load nothing."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def document(title: str, body: str, sheet: str) -> str:
    """A whole page with its style sheet inside; the policy makes a browser refuse any request from it."""
    style = files("dpcate").joinpath("report", sheet).read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], row_names: bool = True) -> str:
    """A table of plain text with headers for screen readers, in a frame that scrolls by itself on a narrow screen."""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "\n".join(_row(cells, row_names) for cells in rows)
    return f"""<div class="frame" role="region" tabindex="0" aria-label="{escape(caption)}">
<table><caption>{escape(caption)}</caption>
<thead><tr>{columns}</tr></thead>
<tbody>
{lines}
</tbody></table></div>"""


def _row(cells: Sequence[str], named: bool) -> str:
    first = f'<th scope="row">{escape(cells[0])}</th>' if named else f"<td>{escape(cells[0])}</td>"
    return f"<tr>{first}{''.join(f'<td>{escape(cell)}</td>' for cell in cells[1:])}</tr>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values as a description list."""
    entries = "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">\n{entries}\n</dl>'


def banners(warnings: Iterable[str]) -> str:
    return "\n".join(f'<p class="banner" role="alert">{escape(warning)}</p>' for warning in warnings)


def items(entries: Iterable[tuple[str, str]]) -> str:
    """A list whose entries open with a few words that name them."""
    lines = "\n".join(f"<li><strong>{escape(name)}</strong> {escape(text)}</li>" for name, text in entries)
    return f"<ul>\n{lines}\n</ul>"


def fingerprint(content: bytes) -> str:
    """SHA-256 of the release file, byte for byte, in groups that can be read aloud."""
    digest = hashlib.sha256(content).hexdigest()
    return " ".join(digest[start : start + 8] for start in range(0, len(digest), 8))


def number(value: float, digits: int = 4) -> str:
    """A number for people: a true minus sign, and powers of ten where zeros would have to be counted."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.{digits}g}".replace("-", "−") if "e" not in f"{value:.{digits}g}" else f"{value:,.0f}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    exponent = math.floor(math.log10(abs(value)))
    mantissa = f"{value / 10.0**exponent:.3g}" if exponent > -300 else "1"
    power = f"10{str(exponent).translate(_SUPERSCRIPT)}"
    return power if mantissa == "1" else f"{mantissa} × {power}".replace("-", "−")


def decimals_for(width: float) -> int:
    """Decimals that give an interval of this width two digits."""
    if not math.isfinite(width) or width <= 0:
        return 3
    return min(max(1 - math.floor(math.log10(width)), 0), 12)


def fixed(value: float, decimals: int, signed: bool = False) -> str:
    text = f"{value:{'+' if signed else ''},.{decimals}f}"
    return text.replace("-", "−")
