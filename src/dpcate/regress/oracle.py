"""The curator's side of M2: the exact function, and one noise path that answers any question about it.

    answer(x) = offset + Σ αᵢ k(xᵢ, x) + r·U(x)
for adaptive questions without end, at the price of one release (THEORY, M2 "iterative"). Everything in this
module holds private rows, in memory and on disk: only the answers may leave.
"""

import hashlib
import io
import os
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

import msgspec
import numpy as np

from dpcate.errors import InputError, ReleaseError
from dpcate.models.kernel import KernelModel
from dpcate.privacy import noise_source
from dpcate.privacy.journal import Journal
from dpcate.privacy.path import Kernel, NoisePath

FUNCTION, NOISE = "function.npz", "noise.journal"


def expansion(kernel: Kernel, rows: np.ndarray, dual: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Σ αᵢ k(xᵢ, x), point by point: not a bit of it may depend on which other points are asked with it."""
    return np.array([(kernel(point[None], rows)[0] * dual).sum() for point in x])


class KernelOracle:
    """Answers `effect(x)` at encoded points; `model` is what may be published.

    `save` and `open` keep the state on the curator's disk. A saved oracle goes on after any crash with the same
    path: no answered question ever gets a second answer.
    """

    def __init__(
        self, *, model: KernelModel, rows: np.ndarray, dual: np.ndarray, path: NoisePath, private: bool
    ) -> None:
        self.model = model
        self.private = private
        self._rows, self._dual, self._path = rows, dual, path
        self._folder: Path | None = None

    def __repr__(self) -> str:
        return "<KernelOracle: sealed>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InputError("an oracle holds private rows and must not be pickled or copied; use save and open")

    def effect(self, x: np.ndarray) -> np.ndarray:
        """The private effect at each row of x: one at a time or many at once, the same law and the same answers."""
        x = np.asarray(x, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != self.model.width:
            raise InputError(f"x must be a table of points with {self.model.width} encoded covariates each")
        noise = self._path.at(x)
        return self.model.offset + expansion(self.model.gram, self._rows, self._dual, x) + noise

    def model_at(self, points: np.ndarray) -> KernelModel:
        """What may be published about these points in place of the usual ones."""
        values = self.effect(points) - self.model.offset
        unique, first = np.unique(points, axis=0, return_index=True)
        return msgspec.structs.replace(self.model, points=unique.tolist(), values=values[first].tolist())

    def save(self, folder: str | Path) -> None:
        """Keep the state in a new folder, readable by its owner only, and write every later answer there first.

        The folder holds private rows and the noise that protects them: it must stay on the curator's side.
        """
        if self._folder is not None:
            raise InputError("this oracle is saved already; two states would answer one point twice")
        folder = Path(folder)
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise InputError(f"the folder {folder.name!r} cannot be made: {error.strerror}") from None
        self._folder = folder
        state = self._state()
        self._path.attach(_journal(folder, self.model, state, create=True))
        _write_privately(folder / FUNCTION, state)

    @classmethod
    def open(cls, folder: str | Path, *, random_state: int | None = None) -> "KernelOracle":
        """The oracle as it was saved, with all its answers; new noise is secure unless a seed is given."""
        folder = Path(folder)
        state = _read(folder / FUNCTION)
        try:
            with np.load(io.BytesIO(state), allow_pickle=False) as arrays:
                rows, dual, private = arrays["rows"], arrays["dual"], bool(arrays["private"])
                model = msgspec.json.decode(arrays["model"].tobytes(), type=KernelModel)
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile, msgspec.DecodeError):
            raise ReleaseError(f"the state {FUNCTION!r} is damaged; restore it from a copy") from None
        noise = noise_source(random_state)
        journal = _journal(folder, model, state)
        path = NoisePath(model.gram, sd=model.noise_sd, noise=noise, journal=journal)
        oracle = cls(model=model, rows=rows, dual=dual, path=path, private=private and noise.private)
        oracle._folder = folder
        return oracle

    def close(self) -> None:
        """Stop answering, so that the state can be opened elsewhere."""
        self._path.close()

    def _state(self) -> bytes:
        buffer = io.BytesIO()
        model = np.frombuffer(msgspec.json.encode(self.model), dtype=np.uint8)
        np.savez(buffer, rows=self._rows, dual=self._dual, private=self.private, model=model)
        return buffer.getvalue()


def _journal(folder: Path, model: KernelModel, state: bytes, *, create: bool = False) -> Journal:
    """The journal of this very function: the same noise under another function would cancel in the difference."""
    digest = hashlib.sha256(state).hexdigest()
    settings = f"{model.kernel} {model.bandwidth!r} {model.noise_sd!r} {digest}"
    return Journal(folder / NOISE, width=model.width, settings=settings, create=create)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"the state {path.name!r} cannot be read: {error.strerror or 'unknown reason'}") from None


def _write_privately(path: Path, content: bytes) -> None:
    """Whole or not at all, and for the owner only."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
