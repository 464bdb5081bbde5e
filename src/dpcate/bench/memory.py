"""The most memory a piece of work held, over what the process held before it."""

import ctypes
import resource
import sys
from pathlib import Path

_PROC = Path("/proc/self")


def reset_peak() -> int:
    """Forget earlier peaks where the system can (Linux), and return the bytes from which growth is counted.

    Freed memory goes back to the system first: work that reuses it would seem to need none.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
        (_PROC / "clear_refs").write_text("5")
    except (OSError, AttributeError):
        return peak_bytes()
    return _status_bytes("VmRSS")


def peak_bytes() -> int:
    """The most memory this process has held since it began, or since the last `reset_peak`."""
    if (_PROC / "status").exists():
        return _status_bytes("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status_bytes(field: str) -> int:
    lines = (_PROC / "status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
