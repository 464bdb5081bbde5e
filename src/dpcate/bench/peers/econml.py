"""EconML without privacy: the ceiling. Its defaults throughout, on one thread.

`NonParamDML` has no default for its final stage; it gets scikit-learn's gradient boosting at its defaults, and so does
`DRLearner`, whose default is a straight line and could not show most effects.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.ensemble import GradientBoostingRegressor

from dpcate.bench.peers.method import Case, Fitted, Method
from dpcate.extras import require


def _forest(seed: int) -> Any:
    return require("econml.dml", "peers").CausalForestDML(discrete_treatment=True, n_jobs=1, random_state=seed)


def _nonparametric(seed: int) -> Any:
    final = GradientBoostingRegressor(random_state=seed)
    dml = require("econml.dml", "peers").NonParamDML
    return dml(model_y="auto", model_t="auto", model_final=final, discrete_treatment=True, random_state=seed)


def _doubly_robust(seed: int) -> Any:
    final = GradientBoostingRegressor(random_state=seed)
    return require("econml.dr", "peers").DRLearner(model_final=final, random_state=seed)


def _fit(case: Case, epsilon: float, seed: int, *, make: Callable[[int], Any], interval: bool) -> Fitted:
    train = case.train
    model = make(seed).fit(train.Y, train.T.astype(int), X=train.X)
    return Fitted(lambda X: model.effect(X).ravel(), partial(_interval, model) if interval else None)


def _interval(model: Any, X: Any) -> tuple[Any, Any]:
    low, high = model.effect_interval(X, alpha=0.1)
    return low.ravel(), high.ravel()


def _method(name: str, make: Callable[[int], Any], no_interval: str) -> Method:
    return Method(
        name=f"econml-{name}",
        title=f"EconML {name}",
        role="ceiling",
        private=False,
        guarantee="none: not private",
        library="econml",
        code=("bench/peers/econml.py",),
        fit=partial(_fit, make=make, interval=not no_interval),
        no_interval=no_interval,
    )


_BOOTSTRAP = "none: EconML has one by bootstrap only"
ECONML = (
    _method("CausalForestDML", _forest, ""),
    _method("NonParamDML", _nonparametric, _BOOTSTRAP),
    _method("DRLearner", _doubly_robust, _BOOTSTRAP),
)
