"""Nuisances by moments: propensity, outcome and a first idea of the effect, fitted together."""

from dataclasses import dataclass

import numpy as np

from dpcate.nuisance.first_stage import FirstFit
from dpcate.nuisance.targets import TrainingRows
from dpcate.privacy import Mechanisms
from dpcate.regress import TrialRows, fit_together


@dataclass(frozen=True)
class MomentsNuisance:
    """Every nuisance of every learner follows from π, m and τ: E[Y|x, a] = m(x) + (a − π(x))·τ(x)."""

    name = "moments"
    share = 0.5  # of μ² for the stage: what it learns of the effect is not lost

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        return needs

    def fit(self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float) -> FirstFit:
        label = "nuisances" if training.part is None else f"nuisances on part {training.part + 1}"
        fitted = fit_together(_trial(training), mechanisms, mu, label)

        def in_arm(arm: float, x: np.ndarray) -> np.ndarray:
            return fitted.outcome(x) + (arm - fitted.propensity(x)) * fitted.effect(x)

        predictors = {
            "propensity": fitted.propensity,
            "outcome": fitted.outcome,
            "outcome_control": lambda x: in_arm(0.0, x),
            "outcome_treated": lambda x: in_arm(1.0, x),
        }
        return FirstFit({target: predictors[target] for target in needs}, fitted.start)


def _trial(training: TrainingRows) -> TrialRows:
    rows, schema, chosen = training.rows, training.schema, training.chosen
    return TrialRows(
        x=rows.x[chosen],
        treated=rows.treated[chosen],
        outcome=rows.outcome[chosen],
        present=rows.present[chosen],
        low=schema.outcome.low,
        high=schema.outcome.high,
        two_valued=schema.outcome.binary,
        n=training.n,
        neighbours=training.neighbours,
        rows_per_person=schema.max_rows_per_person,
        part=training.part,
        columns=training.columns,
        propensity_floor=training.propensity_floor,
        propensity=training.propensity,
        late_rounds=training.late_rounds,
    )
