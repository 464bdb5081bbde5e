"""`dpcate bench paper`: run what is not kept yet, then draw every figure twice, with its numbers and one page."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dpcate.bench.figures import Curve, Labels, budget_figure, effects_figure, save_figure
from dpcate.bench.page import Section, page_html
from dpcate.bench.paper.experiments import DELTA, EXPERIMENTS, OURS, PRINTED, Experiment, budgets, jobs
from dpcate.bench.paper.sources import QUERIES, QUICK_ROWS, ROWS, UserFiles
from dpcate.bench.run import FAILED, Job, Kept, Progress, Result, run_jobs
from dpcate.files import write_atomically

INTRODUCTION = (
    "Schröder, Melnychuk and Feuerriegel, “Differentially private learners for heterogeneous treatment effects” "
    "(ICLR 2025), redrawn. Every figure stands here twice: with the paper's calibration, which is NOT PRIVATE (its "
    "noise is too small or scaled by the rows, and its nuisances are trained without noise), and with ours, which is "
    "private end to end by proof. Effects are kept within the outcome's range in both."
)
NOT_PRIVATE = "NOT PRIVATE: the paper's calibration as printed, nuisances without noise"
SEEDED = f"ours: (ε, {DELTA:g})-DP by proof; noise seeded, so that the figure can be made again"
SECURE = f"ours: (ε, {DELTA:g})-DP by proof for each budget; showing several composes them"
STAND_IN = "GENERATED STAND-IN, nobody's data"

Runs = dict[str, list[Result]]  # by method


def redraw(folder: Path, *, quick: bool, files: UserFiles, workers: int, progress: Progress) -> None:
    """Everything that `dpcate bench paper` writes, from the runs kept in paper.jsonl and those still missing."""
    work = list(jobs(quick, files))
    results = run_jobs(work, Kept(folder / "paper.jsonl"), workers=workers, progress=progress)
    sections = []
    for experiment in EXPERIMENTS:
        for calibration in (PRINTED, OURS):
            runs = _runs(experiment, calibration, work, results)
            labels = _labels(experiment, calibration, files)
            name = f"{experiment.name}-{calibration}"
            figure = _figure(experiment, labels, {method: done for method, done in runs.items() if done})
            if figure is not None:
                save_figure(folder, name, figure)
            write_atomically(folder / f"{name}.csv", _csv(experiment, runs).encode())
            sections.append(_section(labels, figure, _failures(experiment, calibration, work, results)))
    page = page_html("The paper's experiments, twice", INTRODUCTION, sections, _settings(quick, files))
    write_atomically(folder / "paper.html", page.encode())


def _runs(experiment: Experiment, calibration: str, work: Sequence[Job], results: Sequence[Result]) -> Runs:
    runs: Runs = {method: [] for method in experiment.methods(calibration)}
    for job, result in _of(experiment, calibration, work, results):
        if FAILED not in result:
            runs[job.key["method"]].append(result)
    return runs


def _failures(experiment: Experiment, calibration: str, work: Sequence[Job], results: Sequence[Result]) -> str:
    pairs = _of(experiment, calibration, work, results)
    said = {f"{job.key['method']} cannot run: {result[FAILED]}" for job, result in pairs if FAILED in result}
    return "; ".join(sorted(said))


def _of(
    experiment: Experiment, calibration: str, work: Sequence[Job], results: Sequence[Result]
) -> list[tuple[Job, Result]]:
    wanted = (experiment.name, calibration)
    pairs = zip(work, results, strict=True)
    return [(job, result) for job, result in pairs if (job.key["experiment"], job.key["calibration"]) == wanted]


def _labels(experiment: Experiment, calibration: str, files: UserFiles) -> Labels:
    medical = experiment.source in ("mimic", "tcga")
    of_user = files.of(experiment.source) is not None
    title = f"{experiment.title}, δ = {DELTA:g}" + (f" — {STAND_IN}" if medical and not of_user else "")
    if calibration == PRINTED:
        return Labels(title=title, x=experiment.x, y=experiment.y, warning=NOT_PRIVATE)
    return Labels(title=f"{title}\n{SECURE if of_user else SEEDED}", x=experiment.x, y=experiment.y)


def _figure(experiment: Experiment, labels: Labels, runs: Runs) -> Figure | None:
    """Errors against the budget where there are several runs, else effects along the covariate."""
    if not runs:
        return None
    if experiment.runs == 1:
        return effects_figure(labels, [_curve(method, done[0]) for method, done in runs.items()])
    first = next(iter(runs.values()))
    levels = {"exact constant": float(np.median([np.std(run["truth"]) for run in first]))}
    for method, done in runs.items():
        if done[0]["original"] is not None:
            levels[f"{method} without noise"] = float(np.median([_pehe(run["original"], run) for run in done]))
    return budget_figure(labels, {method: _errors(done) for method, done in runs.items()}, levels, log=True)


def _curve(method: str, run: Result) -> Curve:
    return Curve(
        name=method,
        x=np.array(run["x"]),
        effects={float(epsilon): np.array(effect) for epsilon, effect in run["effects"].items()},
        original=None if run["original"] is None else np.array(run["original"]),
        truth=None if run["truth"] is None else np.array(run["truth"]),
    )


def _errors(done: Sequence[Result]) -> dict[float, list[float]]:
    return {float(epsilon): [_pehe(run["effects"][epsilon], run) for run in done] for epsilon in done[0]["effects"]}


def _pehe(effect: Any, run: Result) -> float:
    return float(np.sqrt(np.mean((np.array(effect) - np.array(run["truth"])) ** 2)))


def _csv(experiment: Experiment, runs: Runs) -> str:
    """The numbers of the figure: errors by run, or effects by point; words where something is not known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if experiment.runs > 1:
        writer.writerow(["method", "run", "epsilon", "pehe", "pehe_without_noise"])
        writer.writerows(_error_rows(runs))
    else:
        writer.writerow(["method", "epsilon", "x", "effect", "without_noise", "truth"])
        writer.writerows(_effect_rows(runs))
    return text.getvalue()


def _error_rows(runs: Runs) -> Iterator[list[Any]]:
    for method, done in runs.items():
        for number, run in enumerate(done, start=1):
            original = "not computed" if run["original"] is None else _pehe(run["original"], run)
            for epsilon, effects in run["effects"].items():
                yield [method, number, epsilon, _pehe(effects, run), original]


def _effect_rows(runs: Runs) -> Iterator[list[Any]]:
    for method, done in runs.items():
        for run in done:
            unknown = [None] * len(run["x"])
            for epsilon, effects in run["effects"].items():
                columns = (run["x"], effects, run["original"] or unknown, run["truth"] or unknown)
                for x, effect, original, truth in zip(*columns, strict=True):
                    beside = ["not computed" if original is None else original, "not known" if truth is None else truth]
                    yield [method, epsilon, x, effect, *beside]


def _section(labels: Labels, figure: Figure | None, failures: str) -> Section:
    heading, _, more = labels.title.partition("\n")
    return Section(
        heading=heading, text=" ".join(filter(None, [more, failures])), warning=labels.warning, figure=figure
    )


def _settings(quick: bool, files: UserFiles) -> dict[str, str]:
    return {
        "ε": ", ".join(f"{epsilon:g}" for epsilon in budgets(quick)),
        "δ": f"{DELTA:g}",
        "rows of the synthetic datasets": f"{QUICK_ROWS if quick else ROWS}, 90% of them fitted on",
        "queries": str(QUICK_ROWS // 10 if quick else QUERIES),
        "runs on Dataset 2": "2" if quick else "10",
        "as printed": "kernel ridge at scikit-learn's defaults; network of two layers of 32; functional with m = 50, "
        "λ = 1; nuisances by perceptrons without noise on the other half of the rows",
        "ours": "second stages at the library's defaults, nothing passed",
        "medical queries": "public points: along hematocrit with all else at mid-range; all genes expressed alike",
        "MIMIC-III": files.mimic.name if files.mimic else f"{STAND_IN}; give the file by --mimic",
        "TCGA": files.tcga.name if files.tcga else f"{STAND_IN}; give the files by --tcga and --genes",
    }
