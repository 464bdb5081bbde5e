"""Points to be asked about, as a schema encodes them."""

from typing import Any

import numpy as np

from dpcate.encoding import encode_covariates
from dpcate.schema import Schema
from dpcate.tables import as_columns


def encoded(schema: Schema, points: Any) -> np.ndarray:
    return encode_covariates(schema, as_columns(points, list(schema.covariates)))[0]
