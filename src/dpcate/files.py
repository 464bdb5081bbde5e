"""Files in and out: whole or not at all, with errors that name the file and the remedy."""

import os
import tempfile
from pathlib import Path

from dpcate.errors import DataError, InputError

MAX_BYTES = 256 * 1024 * 1024


def read_bytes(path: str | Path, what: str) -> bytes:
    """All of a small file (a schema, a release), never of a table."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            problem = "is too large to be one"
        elif path.exists() and not path.is_file():
            problem = "is not a file"
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
            with tempfile.NamedTemporaryFile(dir=path.parent):
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
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
