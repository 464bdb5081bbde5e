"""Neyman-orthogonal losses as the pair (ρ, ρφ)."""

from dpcate.orthogonal.learners import DR, Learner, Nuisances, OrthogonalPair, R, Weight, learner_named

__all__ = ["DR", "Learner", "Nuisances", "OrthogonalPair", "R", "Weight", "learner_named"]
