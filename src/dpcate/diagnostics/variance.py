"""A variance that is itself known with noise."""


def widened(privacy: float, sampled: float, noise: float) -> float:
    """Privacy noise, known exactly, and sampling noise, known with noise of this sd.

    Dividing by a variance V + η makes squared z-scores larger by the factor 1 + sd(η)²/V², to second order: so much
    wider is what is returned.
    """
    total = privacy + max(sampled, 0.0)
    return total + noise**2 / total
