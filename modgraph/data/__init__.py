"""Data sets, one file each."""

from modgraph.data.cifar10 import Cifar10
from modgraph.data.declaration import TRAIN, VALIDATION, Arrays, DataSet, OnDisk
from modgraph.data.digits import Digits
from modgraph.data.image_folders import ImageFolders
from modgraph.data.min_max_digits import MinMaxDigits
from modgraph.data.npz import Npz
from modgraph.data.rotated_digits import RotatedDigits
from modgraph.data.text import Text
from modgraph.data.two_gaussians import TwoGaussians

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
