"""Where this project stands next to what a user would pick instead, method by method."""

from dpcate.bench.peers.as_printed import PRINTED
from dpcate.bench.peers.constant import CONSTANTS
from dpcate.bench.peers.ebm import EBM
from dpcate.bench.peers.econml import ECONML
from dpcate.bench.peers.method import Case, Fitted, Method
from dpcate.bench.peers.networks import NETWORKS
from dpcate.bench.peers.ours import OURS

METHODS: dict[str, Method] = {method.name: method for method in (*OURS, *EBM, *NETWORKS, *PRINTED, *CONSTANTS, *ECONML)}

__all__ = ["METHODS", "Case", "Fitted", "Method"]
