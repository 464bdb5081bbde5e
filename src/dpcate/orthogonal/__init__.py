"""Neyman-orthogonal losses as the pair (ρ, ρφ)."""

from dpcate.orthogonal.learners import DR, Learner, OrthogonalPair, R, Weight, learner_named

__all__ = ["DR", "Learner", "OrthogonalPair", "R", "Weight", "learner_named"]
