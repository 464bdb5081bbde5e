"""What a result was made with: a result of other code is not taken for one of this code."""

import hashlib
import platform
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import dpcate

SHOWN = ("dpcate", "numpy", "scipy", "scikit-learn", "jax", "interpret-core", "econml", "causallib")
_NO_NUMBERS = ("bench", "cli*.py", "planning", "plots.py", "report", "web")  # what cannot change an estimate
_ROOT = Path(dpcate.__file__).parent


@lru_cache
def version_of(library: str, code: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> str:
    """The library's version, with a digest of the files of ours that compute with it; for dpcate, of all but those
    that are named."""
    version = f"{library} {_installed(library)}"
    if library == "dpcate" and not code:
        unused = files_of(without)
        return f"{version}+{_digest(path for path in _files_with_numbers() if path not in unused)}"
    return f"{version}+{_digest(files_of(code))}" if code else version


def files_of(code: Iterable[str]) -> list[Path]:
    """The files named, and those of the folders named, both below the package."""
    return sorted({path for name in code for path in [_ROOT / name, *(_ROOT / name).rglob("*.py")] if path.is_file()})


def _files_with_numbers() -> list[Path]:
    first = {path: path.relative_to(_ROOT).parts[0] for path in sorted(_ROOT.rglob("*.py"))}
    return [path for path, name in first.items() if not any(fnmatch(name, pattern) for pattern in _NO_NUMBERS)]


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


def environment() -> dict[str, str]:
    """Library versions and the machine's kind, for the page."""
    libraries = {name: version_of(name).split(" ", 1)[1] for name in SHOWN}
    return {"Python": platform.python_version(), "machine": platform.machine(), **libraries}


def _installed(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"
