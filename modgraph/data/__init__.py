"""Data sets, a file for each kind."""

from modgraph.data.cifar import Cifar10, Cifar100
from modgraph.data.conll import Conll
from modgraph.data.daily_weather import DailyWeather
from modgraph.data.declaration import TRAIN, VALIDATION, Arrays, DataSet
from modgraph.data.digits import Digits, MinMaxDigits, RotatedDigits
from modgraph.data.fashion_mnist import FashionMnist
from modgraph.data.graph_files import Graphs
from modgraph.data.graphs import BaShapes, KarateClub, Motifs
from modgraph.data.image_folders import ClassFolders, ImageFolders
from modgraph.data.in_python import InPython
from modgraph.data.npz import Npz
from modgraph.data.task_sequence import TaskSequence
from modgraph.data.text import Text
from modgraph.data.two_gaussians import TwoGaussians
