"""Data sets, one file each."""

from modgraph.training.data.cifar10 import Cifar10
from modgraph.training.data.declaration import TRAIN, VALIDATION, Arrays, DataSet, OnDisk
from modgraph.training.data.digits import Digits
from modgraph.training.data.image_folders import ImageFolders
from modgraph.training.data.min_max_digits import MinMaxDigits
from modgraph.training.data.npz import Npz
from modgraph.training.data.rotated_digits import RotatedDigits
from modgraph.training.data.text import Text
from modgraph.training.data.two_gaussians import TwoGaussians

__all__ = [
    "TRAIN",
    "VALIDATION",
    "Arrays",
    "Cifar10",
    "DataSet",
    "Digits",
    "ImageFolders",
    "MinMaxDigits",
    "Npz",
    "OnDisk",
    "RotatedDigits",
    "Text",
    "TwoGaussians",
]
