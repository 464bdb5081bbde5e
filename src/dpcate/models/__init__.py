"""What a release holds: frozen numbers and the pure functions that read them. No module here sees a row."""

from dpcate.models.fourier import FourierModel

__all__ = ["FourierModel"]
