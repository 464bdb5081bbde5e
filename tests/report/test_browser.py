"""The pages in a real browser: nothing is loaded, complains or overflows, and a certificate is one sheet."""

import io
from functools import partial
from pathlib import Path

import pytest
from releases import crowded, diagnosed, seeded, unproven, usual

from dpcate.report import certificate_html, report_html

ARTIFACTS = Path(__file__).parents[2] / "artifacts" / "browser"
A4 = (595, 842)  # points

pytestmark = pytest.mark.browser
RELEASES = {
    "usual": usual,
    "diagnosed": diagnosed,
    "seeded": seeded,
    "unproven": unproven,
    "crowded": partial(crowded, 12),
}
PAGES = {"report": report_html, "certificate": certificate_html}


@pytest.fixture(params=[f"{page}-{release}" for page in PAGES for release in RELEASES])
def opened(request, browser, tmp_path):
    """A page from a file, with all that it logged and asked for."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page, release = request.param.split("-")
    file = tmp_path / f"{request.param}.html"
    file.write_text(PAGES[page](RELEASES[release]()), encoding="utf-8")
    tab = browser.new_page()
    tab.complaints, tab.asked = [], []
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("request", lambda asked: tab.asked.append(asked.url))
    tab.goto(file.as_uri())
    tab.own = file.as_uri()
    tab.label = request.param
    yield tab
    tab.close()


def folded_out(tab):
    tab.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")


def test_nothing_is_asked_for_and_nothing_complains(opened):
    folded_out(opened)
    assert opened.complaints == []
    assert [url for url in opened.asked if not url.startswith("data:")] == [opened.own]
    broken = "all => all.filter(one => !(one.complete && one.naturalWidth > 0)).length"
    assert opened.eval_on_selector_all("img", broken) == 0


@pytest.mark.parametrize(("device", "width"), [("desktop", 1280), ("phone", 390), ("small-phone", 320)])
def test_no_width_makes_the_page_scroll_sideways(opened, device, width):
    opened.set_viewport_size({"width": width, "height": 844})
    if device != "small-phone":
        opened.screenshot(path=ARTIFACTS / f"{opened.label}-{device}.png", full_page=True)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    folded_out(opened)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width


def test_banners_are_seen_first(opened):
    top = opened.eval_on_selector_all(".banner", "all => all.map(one => one.getBoundingClientRect().top)")
    assert bool(top) == opened.label.endswith(("seeded", "unproven"))
    assert all(position < 150 for position in top)


def test_a_certificate_prints_on_one_sheet_of_a4(opened):
    from pypdf import PdfReader

    if not opened.label.startswith("certificate"):
        return
    printed = opened.pdf(prefer_css_page_size=True)
    (ARTIFACTS / f"{opened.label}.pdf").write_bytes(printed)
    sheets = PdfReader(io.BytesIO(printed)).pages
    assert len(sheets) == 1
    assert (round(sheets[0].mediabox.width), round(sheets[0].mediabox.height)) == A4
    assert "SHA-256" in sheets[0].extract_text()
