"""Data sets, one file each."""

from modgraph.training.data.declaration import TRAIN, VALIDATION, Arrays, DataSet
from modgraph.training.data.min_max_digits import MinMaxDigits
from modgraph.training.data.npz import Npz
from modgraph.training.data.text import Text
from modgraph.training.data.two_gaussians import TwoGaussians

__all__ = ["TRAIN", "VALIDATION", "Arrays", "DataSet", "MinMaxDigits", "Npz", "Text", "TwoGaussians"]
