"""A function on the unit box as a constant plus the mean of small networks.

    g(x) = offset + scale · (1/M) Σₘ fₘ(x),   f(x) = W_L a(… a(W₁'x + b₁) …) + b_L,
where every fₘ is a perceptron of the same shape and a is applied entry by entry. The M members were trained
together under one privacy charge, each with noise of its own, so that their spread shows what noise and
initial weights did to them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from dpcate.errors import ReleaseError

Activation = Literal["relu", "tanh"]

POOLED = 0.5  # of a point's variance is that of a typical point: a handful of members is a small sample


@dataclass(frozen=True)
class Perceptron:
    """Layer sizes (inputs, hidden layers, 1) and activation; its weights are one vector, layer by layer (W, b)."""

    sizes: tuple[int, ...]
    activation: Activation

    @property
    def parameters(self) -> int:
        return sum((inputs + 1) * outputs for inputs, outputs in self.shapes)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of each layer."""
        return list(zip(self.sizes[:-1], self.sizes[1:], strict=True))

    def layers(self, weights: Any) -> Iterator[tuple[Any, Any]]:
        """The views (W, b) of a weight vector."""
        start = 0
        for inputs, outputs in self.shapes:
            bias = start + inputs * outputs
            yield weights[start:bias].reshape(inputs, outputs), weights[bias : bias + outputs]
            start = bias + outputs

    def output(self, weights: Any, x: Any, arrays: Any = np) -> Any:
        """f(x), one number per row of x; `arrays` is numpy, or jax.numpy for training."""
        return self.trace(weights, x, [0.0] * len(self.shapes), arrays)[0]

    def trace(self, weights: Any, x: Any, shifts: Sequence[Any], arrays: Any = np) -> tuple[Any, list[Any]]:
        """f(x) with a shift added to each layer's sum, and the input of each layer."""
        inputs = [x]
        *hidden, (last, constant) = self.layers(weights)
        for (matrix, bias), shift in zip(hidden, shifts, strict=False):
            z = inputs[-1] @ matrix + bias + shift
            inputs.append(arrays.tanh(z) if self.activation == "tanh" else arrays.maximum(z, 0.0))
        return (inputs[-1] @ last + constant + shifts[-1])[..., 0], inputs


class NetworkModel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="network"
):
    """Released numbers: a constant, the weights of every member, and what intervals need.

    Four errors are told apart: privacy noise of the constant, whose sd is exact; noise and initial weights of
    the networks, judged by the spread of the members; sampling noise, `sampling_sd`; and what the training had
    no time to learn, `misfit_sd`, a public rule and not a bound.
    """

    sizes: list[int]
    activation: Activation
    members: list[list[float]]
    offset: float
    offset_sd: float
    scale: float
    sampling_sd: float
    misfit_sd: float

    def __post_init__(self) -> None:
        spreads = [self.offset_sd, self.sampling_sd, self.misfit_sd]
        numbers = [self.offset, self.scale, *spreads]
        numbers += [weight for member in self.members for weight in member]
        if not all(math.isfinite(number) for number in numbers):
            raise ReleaseError("a model must consist of finite numbers")
        if min(spreads) < 0 or self.scale <= 0:
            raise ReleaseError("standard deviations must not be negative, and the scale must be positive")
        if self.activation not in get_args(Activation):
            raise ReleaseError("the activation of a network is relu or tanh")
        if len(self.sizes) < 2 or min(self.sizes) < 1 or self.sizes[-1] != 1 or len(self.members) < 2:
            raise ReleaseError("a network needs at least two members, inputs and one output")
        if {len(member) for member in self.members} != {self.perceptron.parameters}:
            raise ReleaseError("layer sizes and weights do not fit each other")

    @property
    def perceptron(self) -> Perceptron:
        return Perceptron(tuple(self.sizes), self.activation)

    @property
    def width(self) -> int:
        return self.sizes[0]

    def value(self, x: np.ndarray) -> np.ndarray:
        """offset + scale · the members' mean."""
        return self.offset + self.scale * mean_output(self.perceptron, self.members, x)

    def sd(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """The sd of the error in g(x); `reference` are public points of the schema's box."""
        spread = (1 - POOLED) * self._variance(x) + POOLED * self._variance(reference).mean()
        return np.sqrt(spread + self.offset_sd**2 + self.sampling_sd**2 + self.misfit_sd**2)

    def _variance(self, x: np.ndarray) -> np.ndarray:
        """Of the members' mean, from their spread."""
        outputs = self.scale * member_outputs(self.perceptron, self.members, x)
        return outputs.var(axis=0, ddof=1) / len(outputs)


def member_outputs(perceptron: Perceptron, members: Sequence[Any], x: np.ndarray) -> np.ndarray:
    """One row per member, one column per point."""
    return np.stack([perceptron.output(np.asarray(member), x) for member in members])


def mean_output(perceptron: Perceptron, members: Sequence[Any], x: np.ndarray) -> np.ndarray:
    return member_outputs(perceptron, members, x).mean(axis=0)
