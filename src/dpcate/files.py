"""Files in and out: whole or not at all, with errors that name the file and the remedy."""

import os
import tempfile
import uuid
from pathlib import Path
from typing import IO

from dpcate.errors import DataError, InputError

MAX_BYTES = 256 * 1024 * 1024


def read_bytes(path: str | Path, what: str) -> bytes:
    """All of a small file (a schema, a release), never of a table."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            problem = "is too large to be one"
        elif not path.is_file():
            problem = "cannot be read: it is not a file"
        else:
            return path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror or 'unknown reason'}"
    except ValueError:
        problem = "cannot be read: the name is not a valid path"
    raise DataError(f"the {what} {path.name!r} {problem}")


def require_writable(path: str | Path) -> None:
    """Refuse an output that could not be written, before anything is spent on it."""
    path = Path(path)
    try:
        if path.is_dir():
            problem = "is a directory; give a file name"
        elif path.exists() and not path.is_file():
            problem = "is a device or pipe, which would be replaced; give a file name"
        else:
            with tempfile.TemporaryFile(dir=path.parent):  # has no name where the system allows it
                return
    except OSError as error:
        problem = f"cannot be written: {error.strerror or 'unknown reason'}"
    except ValueError:
        problem = "cannot be written: the name is not a valid path"
    raise InputError(f"the output {path.name!r} {problem}")


def write_atomically(path: str | Path, content: bytes) -> None:
    """Readers see the old file or the whole new one; the content is on disk before the name is."""
    path = Path(path)
    require_writable(path)
    temporary = path.with_name(f".{path.name[:40]}.{uuid.uuid4().hex}")
    try:
        if not _named_when_whole(temporary, content):
            with temporary.open("wb") as file:
                _write_to_disk(file, content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _named_when_whole(path: Path, content: bytes) -> bool:
    """Write a file that gets its name last, so that not even kill -9 leaves half of one; only some systems can."""
    try:
        unnamed = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (AttributeError, OSError):
        return False
    with os.fdopen(unnamed, "wb") as file:
        _write_to_disk(file, content)
        try:  # any src_dir_fd makes os.link follow the link to the file
            os.link(f"/proc/self/fd/{file.fileno()}", path, src_dir_fd=file.fileno(), follow_symlinks=True)
        except OSError:
            return False
    return True


def _write_to_disk(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
