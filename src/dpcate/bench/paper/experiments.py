"""The experiments of the paper, and one run of each: a learner, a seed, every budget."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpcate import PrivateCATE
from dpcate.bench.paper.sources import UserFiles, questions
from dpcate.bench.peers.as_printed import CODE
from dpcate.bench.printed import printed
from dpcate.bench.run import Job
from dpcate.bench.versions import version_of

EPSILONS = (0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
QUICK_EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-5
FIRST_SEED, QUICK_SEED = 2000, 1000  # as in the comparison with peers
PRINTED, OURS = "printed", "ours"
PRINTED_CODE = (*CODE, "bench/paper/sources.py", "datasets")  # what its results depend on; ours, on all of the library


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure of the paper. Learners by name: as printed, and the second stages of ours that answer the same."""

    name: str
    title: str
    source: str
    x: str
    y: str
    printed: tuple[str, ...]
    ours: tuple[str, ...]
    learner: str = "r"
    finite: bool = True  # effects at the points only, else a whole function
    runs: int = 1

    def methods(self, calibration: str) -> tuple[str, ...]:
        return self.printed if calibration == PRINTED else self.ours


_SYNTHETIC = {"x": "x₀", "y": "effect on the outcome"}
EXPERIMENTS = (
    Experiment(
        name="dataset1-finite",
        title="Dataset 1, finite queries, R-learner",
        source="dataset1",
        printed=("kernel", "network"),
        ours=("kernel", "network"),
        **_SYNTHETIC,
    ),
    Experiment(
        name="dataset1-functional",
        title="Dataset 1, functional queries, R-learner",
        source="dataset1",
        printed=("functional",),
        ours=("features", "moments"),
        finite=False,
        **_SYNTHETIC,
    ),
    Experiment(
        name="dataset2-pehe",
        title="Dataset 2, errors over runs, R-learner",
        source="dataset2",
        x="privacy budget ε",
        y="PEHE (units of the outcome)",
        printed=("kernel", "network", "functional"),
        ours=("kernel", "network", "features", "moments"),
        runs=10,
    ),
    Experiment(
        name="dataset1-dr",
        title="Dataset 1, finite queries, DR-learner",
        source="dataset1",
        learner="dr",
        printed=("kernel", "network"),
        ours=("kernel", "network"),
        **_SYNTHETIC,
    ),
    Experiment(
        name="mimic",
        title="MIMIC-III, finite queries",
        source="mimic",
        x="hematocrit (%)",
        y="effect on red blood cells (10⁶/µL)",
        printed=("kernel",),
        ours=("features", "moments"),
    ),
    Experiment(
        name="tcga",
        title="TCGA, finite queries",
        source="tcga",
        x="sum of all covariates (log₂)",
        y="effect on the outcome",
        printed=("kernel",),
        ours=("features",),
    ),
)
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


def run(experiment: str, calibration: str, method: str, seed: int, quick: bool, files: UserFiles) -> dict[str, Any]:
    """Effects at the points for each budget, and their errors where the truth is known.

    A user's rows get secure noise; drawn rows get seeded noise, so that the figure can be made again.
    """
    this = BY_NAME[experiment]
    asked = questions(this.source, seed, files, quick)
    noise = seed if files.of(this.source) is None else None
    limit = asked.train.schema.outcome.range
    original = None
    if calibration == PRINTED:
        release = printed(method, asked.train, asked.points, seed, this.learner)
        original = release.original
        effects = {epsilon: np.clip(release.effect(epsilon, DELTA, noise), -limit, limit) for epsilon in budgets(quick)}
    else:
        effects = {epsilon: _ours(this, method, asked, epsilon, noise) for epsilon in budgets(quick)}
    return {
        "x": asked.x.tolist(),
        "truth": None if asked.truth is None else asked.truth.tolist(),
        "original": None if original is None else original.tolist(),
        "effects": {f"{epsilon:g}": effect.tolist() for epsilon, effect in effects.items()},
    }


def jobs(quick: bool, files: UserFiles) -> Iterator[Job]:
    for experiment in EXPERIMENTS:
        runs, first = (min(experiment.runs, 2), QUICK_SEED) if quick else (experiment.runs, FIRST_SEED)
        for calibration in (PRINTED, OURS):
            for method in experiment.methods(calibration):
                for seed in range(first, first + runs):
                    yield _job(experiment, calibration, method, seed, quick, files)


def budgets(quick: bool) -> tuple[float, ...]:
    return QUICK_EPSILONS if quick else EPSILONS


def _job(experiment: Experiment, calibration: str, method: str, seed: int, quick: bool, files: UserFiles) -> Job:
    path = files.of(experiment.source)
    key = {
        "experiment": experiment.name,
        "calibration": calibration,
        "method": method,
        "seed": seed,
        "quick": quick,
        "file": "generated" if path is None else f"{path.name}, {path.stat().st_size} bytes",
        "library": version_of("dpcate", PRINTED_CODE if calibration == PRINTED else ()),
    }
    arguments = {"experiment": experiment.name, "calibration": calibration, "method": method, "seed": seed}
    return Job(key, run, {**arguments, "quick": quick, "files": UserFiles(**asdict(files))})


def _ours(experiment: Experiment, stage: str, asked: Any, epsilon: float, noise: int | None) -> np.ndarray:
    train = asked.train
    estimator = PrivateCATE(
        train.schema,
        epsilon=epsilon,
        delta=DELTA,
        learner=experiment.learner,
        second_stage=stage,
        queries=asked.points if experiment.finite else None,
        random_state=noise,
    ).fit(train.Y, train.T, X=train.X)
    return estimator.effect(asked.points)
