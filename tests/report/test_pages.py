"""What a report and a certificate say, whatever the release holds."""

import hashlib
import re
from html.parser import HTMLParser

import msgspec
import numpy as np
import pytest
from releases import SCHEMA, crowded, diagnosed, seeded, unknown_proof, unproven, usual

import dpcate
from dpcate.encoding import value_at
from dpcate.errors import InputError
from dpcate.findings import Diagnostics
from dpcate.models import PointsModel
from dpcate.plots import effect_figure
from dpcate.release import Average
from dpcate.report import certificate_html, read_profiles, report_html
from dpcate.report.markup import decimals_for, fixed, number
from dpcate.report.words import guess_rate, guesses

PAGES = [report_html, certificate_html]


class Outline(HTMLParser):
    """Tags that were opened and not closed, text, and pictures without words."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.silent, self.headers = [], [], [], 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)
        if tag == "img" and not dict(attributes).get("alt"):
            self.silent.append(tag)
        self.headers += tag == "th" and "scope" in dict(attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def text(page):
    return " ".join(" ".join(Outline(page).text).split())


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("release", [usual, diagnosed, seeded, unproven, unknown_proof, crowded])
def test_pages_are_well_formed_and_accessible(page, release):
    html = page(release())
    outline = Outline(html)
    assert outline.open == []
    assert outline.silent == []
    assert outline.headers > 5
    assert '<html lang="en">' in html
    assert "default-src 'none'" in html
    assert not re.search(r"<script|<link|<iframe|@import|url\(|https?:", html)


@pytest.mark.parametrize("page", PAGES)
def test_a_private_release_has_no_banner_and_the_others_do(page):
    assert 'class="banner"' not in page(usual())
    for release, word in [(seeded, "NOT PRIVATE"), (unproven, "UNPROVEN"), (unknown_proof, "UNPROVEN")]:
        html = page(release())
        assert 'class="banner"' in html
        assert word in html
        assert "Nothing is promised" in text(html)
        assert "The release satisfies" not in text(html)
        assert "Signature" not in html


def test_the_report_states_every_fact():
    told = text(report_html(usual()))
    for fact in (
        "Effect of ventilated on rbc", "ventilated = 1 instead of ventilated = 0", "2,000", "65 years", "million/µl",
        "ε = 1", "1 in 1,000,000", "one person, who owns one row", "replaced by anyone else's", "What is not protected",
        "at most 732 times in 1,000", "features-release", "Norm-clipped sums", "The curator's computer.",
        "+", "90% interval", "for all 6 lines together",
    ):  # fmt: skip
        assert fact in told, fact
    for charge in usual().charges:
        assert charge.name in told
        assert charge.proof in told


def test_the_certificate_states_the_same_facts_on_fewer_words():
    told = text(certificate_html(usual()))
    for fact in ("ε = 1", "1 in 1,000,000", "one person, who owns one row", "replace-one", "features-release",
                 "age, sex, ward", "2,000 people", "What is not protected", "Signature", "732 times"):  # fmt: skip
        assert fact in told, fact


def test_the_hash_is_that_of_the_file(tmp_path):
    release = usual()
    release.save(tmp_path / "release.json")
    content = (tmp_path / "release.json").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    for page in PAGES:
        assert digest in page(release).replace(" ", "")
        assert hashlib.sha256(b"{ }").hexdigest() in page(release, content=b"{ }").replace(" ", "")


def test_proof_pages_are_there_in_full_and_only_those_of_the_library():
    assert "triangle inequality" in report_html(usual())
    assert "root:" not in report_html(unknown_proof())


def test_nothing_in_a_release_becomes_markup():
    evil = '<img src=x onerror="alert(1)">'
    covariates = {evil: dpcate.Number(0, 1, unit=evil), "b": dpcate.Category([evil, "x", "$\\frac{"])}
    schema = dpcate.Schema(
        covariates=covariates, treatment=evil + "t", outcome=dpcate.Outcome(evil + "y", low=0, high=1)
    )
    draws = np.random.default_rng(0)
    x = {evil: draws.uniform(0, 1, 50), "b": draws.choice([evil, "x"], 50)}
    fitted = dpcate.PrivateCATE(schema, epsilon=1, delta=1e-6).fit(
        draws.uniform(0, 1, 50), draws.binomial(1, 0.5, 50), X=x
    )
    release = msgspec.structs.replace(fitted.release_, library=evil)
    for page in PAGES:
        html = page(release)
        assert "<img src=x" not in html
        assert Outline(html).open == []


def test_declared_points_are_tabulated_with_and_without_intervals():
    points = [[0.5, 1.0, 0.0, 1.0, 0.0, 0.0], [0.1, 0.0, 1.0, 0.0, 1.0, 0.0]]
    model = PointsModel(points=points, values=[0.25, -1.5], sds=[0.1, 0.1])
    told = text(report_html(msgspec.structs.replace(usual(), model=model)))
    assert "59 years f medical +0.25 0.05 to 0.45" in told
    silent = msgspec.structs.replace(model, sds=None)
    told = text(report_html(msgspec.structs.replace(usual(), model=silent)))
    assert "59 years f medical 0.25" in told
    assert "no intervals" in told


def test_the_average_over_the_people_in_the_data_is_told_where_it_was_paid_for():
    averaged = msgspec.structs.replace(usual(), average=Average(value=-0.25, sd=0.05))
    told = text(report_html(averaged))
    assert "On average over the people in the data, the estimated effect on rbc is −0.25 million/µl" in told
    assert "−0.33 to −0.17, lies below zero" in told
    assert "On average" not in text(report_html(msgspec.structs.replace(usual(), average=None)))


def test_what_diagnostics_found_is_told_in_words_tables_and_pictures():
    assert "Checks of the estimate" not in text(report_html(usual()))
    html = report_html(diagnosed(50.0))
    told = text(html)
    for words in (
        "Checks of the estimate", "of the records have an estimated probability of treatment below 10% or above 90%",
        "The model of the outcome explains", "There is evidence that the effect differs between people as predicted",
        "Between people whose predictions differ by 1, effects differ by", "Group 5 of 5",
        "One person in five was held out of the fit", "The diagnostics of a release",
        "one in five is held out for checks",
    ):  # fmt: skip
        assert words in told, words
    assert 'alt="Noisy counts of records by estimated probability of treatment' in html
    assert 'alt="Mean effects of groups of held-out people' in html
    assert "overlap, outcome, heterogeneity, calibration" in text(certificate_html(diagnosed()))


def test_noise_that_drowns_a_diagnostic_is_admitted():
    told = text(report_html(diagnosed(0.01)))
    assert "The noise is too large to tell how many records" in told
    assert "The noise is too large to tell how much of the outcome" in told
    assert "By how much cannot be told" in told
    assert "too few people" in told


def test_checks_that_were_not_asked_for_are_not_mentioned():
    only = msgspec.structs.replace(usual(), diagnostics=Diagnostics(overlap=diagnosed().diagnostics.overlap))
    told = text(report_html(only))
    assert "Overlap" in told
    assert "Calibration" not in told
    assert "held out" not in told.split("What is promised")[0]


def test_a_stretched_scale_is_told_and_drawn():
    covariates = {**SCHEMA.covariates, "age": dpcate.Number(18, 100, unit="years", typical=30)}
    release = msgspec.structs.replace(usual(), schema=msgspec.structs.replace(SCHEMA, covariates=covariates))
    told = text(report_html(release))
    assert "18 to 100 years, typically 30" in told
    quarters = value_at(covariates["age"], np.array([0.25, 0.75]))
    assert all(f"age: {number(value)} years" in told for value in quarters)
    (axes,) = effect_figure(release, "age").axes
    assert axes.transData.transform([(30, 0)])[0, 0] == pytest.approx(axes.bbox.x0 + axes.bbox.width / 2)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["18", "22", "30", "50", "100"]
    (even,) = effect_figure(usual(), "age").axes
    assert even.transData.transform([(59, 0)])[0, 0] == pytest.approx(even.bbox.x0 + even.bbox.width / 2)


def write(folder, content):
    (folder / "profiles.csv").write_text(content)
    return folder / "profiles.csv"


def test_profiles_rest_at_the_reference_where_they_say_nothing(tmp_path):
    release = usual()
    profiles = read_profiles(SCHEMA, write(tmp_path, "who,age,sex\nMrs <A>,80,f\nMr B,,m\n"))
    alone = release.effect({"age": [80.0, 65.0], "sex": ["f", "m"], "ward": ["surgical", "surgical"]})
    assert np.array_equal(release.effect(profiles.columns), alone)
    html = report_html(release, profiles)
    assert "Mrs &lt;A&gt;" in html
    assert "80 years" in html
    low, high = release.effect_interval(profiles.columns, 0.1, simultaneous=True)
    decimals = decimals_for(float((high - low).min()))
    assert f"{fixed(low[0], decimals)} to {fixed(high[0], decimals)}" in html


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("who\nA\n", "at least one covariate"),
        ("age\n", "between 1 and 200"),
        ("age\n" + "50\n" * 201, "between 1 and 200"),
        ("age\n50\n120\n", "profile 2: age must be a number within its declared bounds"),
        ("age\nold\n", "profile 1: age"),
        ("sex\nf\nx\n", "profile 2: sex must be one of its declared levels"),
    ],
)
def test_profiles_that_would_mislead_are_refused(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read_profiles(SCHEMA, write(tmp_path, content))


def test_guesses_are_those_of_the_best_test():
    """(e^ε + δ)/(e^ε + 1): attained by randomised response, whose best guess is right e^ε/(e^ε + 1) of the time."""
    assert guess_rate(np.log(3), 0) == pytest.approx(0.75)
    assert guess_rate(0, 0.5) == pytest.approx(0.75)
    assert guess_rate(800.0, 1e-6) == 1.0
    assert [guesses(epsilon, 0) for epsilon in (0.0, 1.0, 20.0)] == [500, 732, 1000]


def test_the_same_release_gives_the_same_pages():
    for page in PAGES:
        assert page(usual()) == page(usual())


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (-1.5, "−1.5"), (1e-6, "10⁻⁶"), (2.5e7, "2.5 × 10⁷"), (float("inf"), "∞")],
)
def test_numbers_are_for_people(value, shown):
    assert number(value) == shown
