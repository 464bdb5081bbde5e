"""What a release holds: frozen numbers and the pure functions that read them. No module here sees a row."""

from dpcate.models.fourier import FourierModel
from dpcate.models.kernel import KernelModel
from dpcate.models.moments import MomentsModel
from dpcate.models.network import NetworkModel
from dpcate.models.points import PointsModel

Model = FourierModel | KernelModel | MomentsModel | NetworkModel | PointsModel

__all__ = ["FourierModel", "KernelModel", "Model", "MomentsModel", "NetworkModel", "PointsModel"]
