"""Effects at declared points only: what an estimator with `queries=` releases."""

import math

import msgspec
import numpy as np

from dpcate.errors import ReleaseError


class PointsModel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="points"
):
    """Encoded points, the value released at each, and the sd of its error (None where no honest one exists)."""

    points: list[list[float]]
    values: list[float]
    sds: list[float] | None

    def __post_init__(self) -> None:
        numbers = [*self.values, *(self.sds or []), *(entry for point in self.points for entry in point)]
        if not all(math.isfinite(number) for number in numbers) or any(sd < 0 for sd in self.sds or []):
            raise ReleaseError("a model must consist of finite numbers, and no sd may be negative")
        if len({len(point) for point in self.points}) != 1 or not self.points[0]:
            raise ReleaseError("the points of a release must have the same width")
        if len(self.values) != len(self.points) or len(self.sds or self.values) != len(self.points):
            raise ReleaseError("points, values and standard deviations do not fit each other")

    @property
    def width(self) -> int:
        return len(self.points[0])

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.values)[self._positions(x)]

    def sd(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        if self.sds is None:
            raise ReleaseError("this release has no intervals: its noise scale depends on rows and is withheld")
        return np.asarray(self.sds)[self._positions(x)]

    def _positions(self, x: np.ndarray) -> np.ndarray:
        known = {_key(np.asarray(point)): position for position, point in enumerate(self.points)}
        positions = [known.get(_key(point)) for point in x]
        if None in positions:
            raise ReleaseError("this release answers at its declared points only; ask for one of them")
        return np.array(positions, dtype=int)


def _key(point: np.ndarray) -> bytes:
    """Points are the same when they agree to twelve digits, so that a CSV round trip finds them again."""
    return (np.round(point, 12) + 0.0).tobytes()
