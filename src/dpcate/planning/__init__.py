"""What a budget would buy, before any row is read: the real fit, tried on made-up people."""

from dpcate.planning.plan import Plan, plan
from dpcate.planning.question import Question
from dpcate.planning.simulation import Prediction, predict
from dpcate.planning.standin import Assumptions

__all__ = ["Assumptions", "Plan", "Prediction", "Question", "plan", "predict"]
