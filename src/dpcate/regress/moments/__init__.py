"""M3, the default: an adaptive basis, rounds of norm-clipped scores, and Bayesian post-processing.

`rows` holds all that touches rows; `sizes`, `belief`, `rounds` are functions of released numbers; `rules` are public;
`together` is the first stage (π, m and τ at once), `stage` the second.
"""

from dpcate.regress.moments.stage import Moments
from dpcate.regress.moments.together import EffectStart, Together, TrialRows, fit_together

__all__ = ["EffectStart", "Moments", "Together", "TrialRows", "fit_together"]
