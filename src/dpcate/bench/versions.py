"""What a result was made with: a result of other code is not taken for one of this code."""

import hashlib
import platform
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import dpcate

SHOWN = ("dpcate", "numpy", "scipy", "scikit-learn", "jax", "interpret-core", "econml", "causallib")
_NO_NUMBERS = ("bench", "cli.py", "plots.py", "report.py", "web")  # what cannot change an estimate


@lru_cache
def version_of(library: str) -> str:
    """The library's version; for dpcate, which changes between versions, with a digest of its code."""
    if library != "dpcate":
        return f"{library} {_installed(library)}"
    root = Path(dpcate.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _NO_NUMBERS:
            digest.update(path.read_bytes())
    return f"dpcate {dpcate.__version__}+{digest.hexdigest()[:10]}"


def environment() -> dict[str, str]:
    """Library versions and the machine's kind, for the page."""
    libraries = {name: version_of(name).split(" ", 1)[1] for name in SHOWN}
    return {"Python": platform.python_version(), "machine": platform.machine(), **libraries}


def _installed(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"
