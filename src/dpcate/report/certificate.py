"""The certificate: the facts of a report on one sheet of paper, the hash that ties it to a file, and room to sign."""

from collections import Counter
from html import escape

from dpcate.release import Release
from dpcate.report import words
from dpcate.report.markup import banners, document, fingerprint, items

_LONGEST = 80  # characters of a heading and of a fact, so that the sheet stays one sheet
_LONGEST_FACT = 120
_MANY_REMARKS = 6  # from here on, smaller print keeps them on the sheet
_MOST_NAMES = 8
_MOST_KINDS = 4


def certificate_html(release: Release, content: bytes | None = None) -> str:
    """The sheet as text. `content` is the release file, if it is not what `release.save` would write."""
    warned = words.warnings(release)
    title = "Not a certificate" if warned else "Certificate of a private release"
    remarks = len(words.cautions(release)) + len(words.not_protected(release))
    body = f"""<main class="{"dense" if remarks > _MANY_REMARKS else "plain"}">
{banners(warned)}
<header>
<p class="kind">dpcate {escape(_short(release.library, 30))}</p>
<h1>{title}</h1>
<p class="lead">{escape(_short(words.heading(release)))}</p>
</header>
<p>{escape(_statement(release, warned))}</p>
{_facts(release, warned)}
<h2>Which file</h2>
<p>SHA-256 of the release file, byte for byte (<code>sha256sum release.json</code>, <code>shasum -a 256</code>, or
<code>certutil -hashfile release.json SHA256</code>; spaces do not count):</p>
<p class="hash">{fingerprint(release.to_json() if content is None else content)}</p>
<h2>What is not protected</h2>
{items(words.not_protected(release))}
{_nothing_to_sign() if warned else _signatures()}
</main>"""
    return document(f"{title}: {_short(words.heading(release))}", body, "certificate.css")


def _statement(release: Release, warned: list[str]) -> str:
    if warned:
        return (
            "Nothing is promised to the people in the data. The ε and δ below are claims only. Do not sign this sheet."
        )
    return f"{words.claim(release)} {words.epsilon(release)}"


def _facts(release: Release, warned: list[str]) -> str:
    rows = [
        ("Estimated", f"how much {release.schema.outcome.name} changes with {words.comparison(release)}"),
        ("Outcome", words.outcome(release)),
        ("For whom", f"people described by {_names(list(release.schema.covariates))}"),
        ("Learnt from", words.people(release)),
        ("Privacy budget", words.budget(release)),
        ("Protected", words.unit(release)),
        ("Neighbours", words.relation(release)),
        ("Method", "; ".join(text for _, text in words.method(release)[:2])),
        ("Mechanisms", _kinds(release)),
        ("Guarantee", "none" if warned else f"proven for every table; proof page {release.proof}, in the report"),
    ]  # fmt: skip
    if release.diagnostics is not None:
        rows.append(("Checks paid for", words.checks(release)))
    rows = [(name, _short(text, _LONGEST_FACT)) for name, text in rows]
    rows += [("To be weighed", caution) for caution in words.cautions(release)]
    lines = "\n".join(f'<tr><th scope="row">{name}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    return f"<table><caption>The facts of the release</caption><tbody>\n{lines}\n</tbody></table>"


def _kinds(release: Release) -> str:
    """How many charges there are, by the bound that each rests on."""
    counts = Counter(charge.proof for charge in release.charges).most_common()
    told = [f"{count} by {_short(proof, 30)}" for proof, count in counts[:_MOST_KINDS]]
    more = [f"{len(counts) - _MOST_KINDS} other kinds"] if len(counts) > _MOST_KINDS else []
    return f"{len(release.charges)} charged: {', '.join(told + more)}; each is listed in the report"


def _names(names: list[str]) -> str:
    told = [_short(name, 20) for name in names[:_MOST_NAMES]]
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return ", ".join(told + more)


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _signatures() -> str:
    return f"""<h2>Decision</h2>
<p class="decision"><span>☐ may be published</span> <span>☐ may be published under conditions</span>
<span>☐ must not be published</span></p>
<div class="signatures">
{_line("For the curator of the data")}
{_line("For the privacy board")}
</div>"""


def _line(who: str) -> str:
    blanks = "".join(f"<p><span>{what}</span></p>" for what in ("Name and office", "Place and date", "Signature"))
    return f"<section><h3>{who}</h3>{blanks}</section>"


def _nothing_to_sign() -> str:
    return '<p class="decision">There is nothing to sign on this sheet.</p>'
