"""The noise of answered questions on disk, so that no crash makes anybody draw it again.

An append-only file: a header, then one record per batch of (point, u) pairs,

    record = count · check(count) · count × (point, u) in float64 · check(pairs),

where every check is a CRC-32 that continues from the one before it. A record is on disk (fsync) before
`append` returns, so before anything is answered. Whatever kills the writer can only leave the beginning of
a last record, which was never answered: it is dropped on opening. Anything else that does not fit is
refused, because dropping an answered record would mean a second draw for the same point, and two draws
can be averaged. The header ties the file to one release: same dimension, same settings, or no continuation.
One writer at a time. The file is as secret as the rows: who knows the noise can subtract it.
"""

import fcntl
import hashlib
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpcate.errors import ReleaseError

Array = NDArray[np.float64]

_START = struct.Struct("<8sI")  # magic, version
_PURPOSE = struct.Struct("<I32s")  # width of a point, hash of the settings
_COUNT = struct.Struct("<II")
_CHECK = struct.Struct("<I")
_MAGIC, _VERSION = b"dpcate-u", 1


class Journal:
    """Pairs (point, u); `points` and `values` are those found on opening, empty after `create`."""

    def __init__(self, path: str | Path, *, width: int, settings: str, create: bool = False) -> None:
        self._path, self._width, self._process = Path(path), width, os.getpid()
        purpose = _PURPOSE.pack(width, hashlib.sha256(settings.encode()).digest())
        header = _START.pack(_MAGIC, _VERSION) + purpose
        self._chain = zlib.crc32(header)
        self._sound = True
        self._file = self._open(create)
        try:
            self._lock()
            pairs = self._create(header) if create else self._recover(header)
        except BaseException:
            self.close()
            raise
        self.points, self.values = np.ascontiguousarray(pairs[:, :-1]), pairs[:, -1].copy()

    def append(self, points: Array, values: Array) -> None:
        """After this returns, the pairs survive any crash. After an error, only reopening helps."""
        if not self._sound or os.getpid() != self._process:
            raise self._error("cannot be continued by this process; open it again")
        self._sound = False
        pairs = np.column_stack([points, values]).astype("<f8")
        count = struct.pack("<I", len(pairs))
        head = _COUNT.pack(len(pairs), zlib.crc32(count, self._chain))
        chain = zlib.crc32(pairs.tobytes(), zlib.crc32(head, self._chain))
        self._write(head + pairs.tobytes() + _CHECK.pack(chain))
        self._chain, self._sound = chain, True

    def close(self) -> None:
        """Release the lock; appending is over."""
        self._sound = False
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self, create: bool) -> int:
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if create else 0)
        try:
            return os.open(self._path, flags, 0o600)
        except OSError as error:
            problem = f"cannot be {'created' if create else 'opened'}: {error.strerror or 'unknown reason'}"
        raise self._error(problem)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            locked = False
        else:
            locked = True
        if not locked:
            raise self._error("is in use by another writer; stop that one first")

    def _create(self, header: bytes) -> Array:
        self._write(header)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return np.empty((0, self._width + 1))

    def _recover(self, header: bytes) -> Array:
        """All whole records; the beginning of an unfinished last one is cut off."""
        content = self._path.read_bytes()
        if content[: _START.size] != header[: _START.size] or len(content) < len(header):
            raise self._error("is not a noise journal of this version")
        if content[: len(header)] != header:
            raise self._error("belongs to a release with other settings")
        found, position = [np.empty((0, self._width + 1))], len(header)
        while (end := self._end_of_record(content, position)) is not None:
            payload = content[position + _COUNT.size : end - _CHECK.size]
            chain = zlib.crc32(payload, zlib.crc32(content[position : position + _COUNT.size], self._chain))
            pairs = np.frombuffer(payload, dtype="<f8").reshape(-1, self._width + 1).astype(np.float64)
            if _CHECK.unpack_from(content, end - _CHECK.size)[0] != chain or not np.isfinite(pairs).all():
                raise self._error("is damaged; restore it from a copy made after its last answer")
            found.append(pairs)
            self._chain, position = chain, end
        if position < len(content):
            os.ftruncate(self._file, position)
            os.fsync(self._file)
        return np.concatenate(found)

    def _end_of_record(self, content: bytes, position: int) -> int | None:
        """Where the record at `position` ends; None if it was not written to its end."""
        if len(content) - position < _COUNT.size:
            return None
        count, check = _COUNT.unpack_from(content, position)
        if count == 0 or check != zlib.crc32(struct.pack("<I", count), self._chain):
            raise self._error("is damaged; restore it from a copy made after its last answer")
        end = position + _COUNT.size + 8 * count * (self._width + 1) + _CHECK.size
        return int(end) if end <= len(content) else None

    def _write(self, content: bytes) -> None:
        remaining = memoryview(content)
        while remaining:
            remaining = remaining[os.write(self._file, remaining) :]
        os.fsync(self._file)

    def _error(self, problem: str) -> ReleaseError:
        return ReleaseError(f"the noise journal {self._path.name!r} {problem}")
