"""Data sets, one file for those of a kind."""

from modgraph.data.cifar import Cifar10 as Cifar10
from modgraph.data.cifar import Cifar100 as Cifar100
from modgraph.data.conll import Conll as Conll
from modgraph.data.daily_weather import DailyWeather as DailyWeather
from modgraph.data.declaration import TRAIN as TRAIN
from modgraph.data.declaration import VALIDATION as VALIDATION
from modgraph.data.declaration import Arrays as Arrays
from modgraph.data.declaration import DataSet as DataSet
from modgraph.data.declaration import OnDisk as OnDisk
from modgraph.data.digits import Digits as Digits
from modgraph.data.digits import MinMaxDigits as MinMaxDigits
from modgraph.data.digits import RotatedDigits as RotatedDigits
from modgraph.data.fashion_mnist import FashionMnist as FashionMnist
from modgraph.data.image_folders import ClassFolders as ClassFolders
from modgraph.data.image_folders import ImageFolders as ImageFolders
from modgraph.data.npz import Npz as Npz
from modgraph.data.task_sequence import TaskSequence as TaskSequence
from modgraph.data.text import Text as Text
from modgraph.data.two_gaussians import TwoGaussians as TwoGaussians
