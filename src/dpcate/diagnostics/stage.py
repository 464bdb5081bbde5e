"""The diagnostics of one fit: of the models of treatment and outcome, and then of the effect."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpcate.data import Rows
from dpcate.diagnostics.calibration import private_calibration
from dpcate.diagnostics.held_out import HeldOut, private_look
from dpcate.diagnostics.heterogeneity import private_heterogeneity
from dpcate.diagnostics.outcome import private_outcome_fit
from dpcate.diagnostics.overlap import private_overlap
from dpcate.diagnostics.prices import Chosen
from dpcate.diagnostics.sums import Sums
from dpcate.encoding import reference_points
from dpcate.findings import Calibration, Heterogeneity, OutcomeFit, Overlap
from dpcate.models import Model
from dpcate.orthogonal import Learner, Nuisances
from dpcate.privacy import Mechanisms, Neighbours, Part, Shares
from dpcate.schema import Schema

ON_HELD_OUT = Shares({"look": 0.2, "rest": 0.8})  # of the held-out people's budget


class Met(NamedTuple):
    """Rows, by number, and the nuisances that they met."""

    chosen: np.ndarray
    nuisances: Nuisances


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What is asked of the rows, and the public facts that the answers need."""

    asked: Chosen
    schema: Schema
    learner: Learner
    propensity_floor: float
    neighbours: Neighbours

    def of_models(
        self, rows: Rows, met: Sequence[Met], part: Part, mechanisms: Mechanisms, mu: float
    ) -> dict[str, Overlap | OutcomeFit]:
        """Overlap and outcome fit on the rows of the second stage, each with its share of the fit's μ²."""
        chosen = np.concatenate([each.chosen for each in met])
        sums = self._sums(rows, chosen, part, mechanisms)
        found: dict[str, Overlap | OutcomeFit] = {}
        if "overlap" in self.asked.names:
            propensity = np.concatenate([each.nuisances.propensity(rows.x[each.chosen]) for each in met])
            found["overlap"] = private_overlap(
                sums, propensity, rows.treated[chosen], self.propensity_floor, self.asked.mu("overlap", mu)
            )
        if "outcome" in self.asked.names:
            expected = np.concatenate([self._expected(each.nuisances, rows.x[each.chosen]) for each in met])
            centre = float(np.mean([self._expected(each.nuisances, self._reference).mean() for each in met]))
            found["outcome"] = private_outcome_fit(
                sums, rows.outcome[chosen], expected, centre, self.schema.outcome.range, self.asked.mu("outcome", mu)
            )
        return found

    def of_effect(
        self, rows: Rows, met: Sequence[Met], model: Model, n: float, part: int, mechanisms: Mechanisms
    ) -> dict[str, Heterogeneity | Calibration]:
        """Heterogeneity and calibration on the held-out people, who have met every set of nuisances.

        They spend, in equal parts after a common look, all that these people's budget has left.
        """
        mu, asked = mechanisms.accountant.gaussian_left(part), self.asked.on_held_out
        people = self._held_out(rows, met, model, n, part, mechanisms)
        look = private_look(people, ON_HELD_OUT.mu("look", mu))
        each = ON_HELD_OUT.mu("rest", mu) / math.sqrt(len(asked))
        diagnostics = {"heterogeneity": private_heterogeneity, "calibration": private_calibration}
        return {name: diagnostics[name](people, look, each) for name in asked}

    def _held_out(
        self, rows: Rows, met: Sequence[Met], model: Model, n: float, part: int, mechanisms: Mechanisms
    ) -> HeldOut:
        chosen, limit = met[0].chosen, self.schema.outcome.range
        x, treated, outcome = rows.x[chosen], rows.treated[chosen], rows.outcome[chosen]
        prediction = np.clip(model.value(x), -limit, limit)
        pairs = [self.learner.pair(treated, outcome, x, each.nuisances) for each in met]
        return HeldOut(
            sums=self._sums(rows, chosen, part, mechanisms),
            prediction=prediction,
            error=np.mean([(pair.rho_phi - pair.rho * prediction) / pair.overlap for pair in pairs], axis=0),
            n=n,
            reference=np.clip(model.value(self._reference), -limit, limit),
            limit=limit,
        )

    def _sums(self, rows: Rows, chosen: np.ndarray, part: Part, mechanisms: Mechanisms) -> Sums:
        return Sums(
            present=rows.present[chosen],
            neighbours=self.neighbours,
            rows_per_person=self.schema.max_rows_per_person,
            part=part,
            mechanisms=mechanisms,
        )

    @property
    def _reference(self) -> np.ndarray:
        return reference_points(self.schema)

    def _expected(self, nuisances: Nuisances, x: np.ndarray) -> np.ndarray:
        """E[Y|x], by its own model or from those of the arms."""
        if "outcome" in self.learner.needs:
            return nuisances.outcome(x)
        control, treated = nuisances.outcome_by_arm(x)
        return control + nuisances.propensity(x) * (treated - control)
