"""Libraries that only some parts need, each behind an extra of the package."""

from importlib import import_module
from types import ModuleType

from dpcate.errors import InputError


def require(module: str, extra: str) -> ModuleType:
    """The module, or one line that names the extra to install."""
    try:
        return import_module(module)
    except ImportError:
        pass
    raise InputError(f"this needs {module.split('.')[0]}: pip install 'dpcate[{extra}]'")
