"""Modules that torch lacks; a standalone library."""

from modgraph.nn.along_axis import Contract, Last, LogSoftmax, LogSumExp, Max, Mean, Min, Softmax, Sum, Unit
from modgraph.nn.arithmetic import Arithmetic, Where
from modgraph.nn.array import Constant, NextState, Parameter, State
from modgraph.nn.balance import BalancedAssignment, Sinkhorn
from modgraph.nn.chance import DRAW, Draw, GumbelNoise, NormalNoise
from modgraph.nn.choice import (
    Above,
    Dispatch,
    ExpertChoice,
    FirstPlaces,
    MaskedSoftmax,
    StopGradient,
    StraightThrough,
    TokenChoice,
    TopKMask,
    TrainingOrInference,
    WithinCapacity,
)
from modgraph.nn.choice_routes import ChoiceDense, ChoiceGathered, ChoiceGrouped, ChoiceMasked, ChoicePerModule
from modgraph.nn.divided_pool import DividedPool
from modgraph.nn.dot_product import DotProductAttention
from modgraph.nn.edges import AtSource, AtTarget, Degree, EdgeScatter, EdgeSoftmax
from modgraph.nn.elementwise import Clamp, Elementwise
from modgraph.nn.exchange import Group
from modgraph.nn.id_routes import IdChoice, IdGathered, IdGrouped, IdPerModule
from modgraph.nn.ids import Lookup, OneHot, ToIds, TopKIndices
from modgraph.nn.image import (
    AvgPool2d,
    BatchNorm2d,
    Conv2d,
    ConvTranspose2d,
    GroupNorm,
    MaxPool2d,
    PatchEmbed,
    Tokens,
    Upsample,
)
from modgraph.nn.linear import Linear, ModulatedLinear, ModulatedMLP, Scale
from modgraph.nn.loss import (
    L1,
    MSE,
    BatchMean,
    BatchVariance,
    BinaryCrossEntropy,
    CrossEntropy,
    Entropy,
    Gaussian,
    Huber,
    Importance,
    KeepRecent,
)
from modgraph.nn.matrix_recurrence import run_matrix_recurrence
from modgraph.nn.neighbours import Conv1d, Flip, Shift
from modgraph.nn.order import CumulativeSum, KthLargest, Positions, SortOrder
from modgraph.nn.padding import MaskPadding, apply_mask, valid, valid_along
from modgraph.nn.pool import Pool
from modgraph.nn.recurrence import run_recurrence, shift_states
from modgraph.nn.recurrent import GRU, LSTM
from modgraph.nn.rotary import Rotary, ScaledRotary
from modgraph.nn.scan import scan
from modgraph.nn.shape import Concat, Expand, Flatten, Merge, NewAxis, Select, Split, Stack, Transpose, Unmerge
from modgraph.nn.shard import (
    Dropout,
    DropPath,
    Messages,
    Shard,
    standard_gumbel,
    standard_normal,
    use_shard,
    whole_batch_sum,
)
from modgraph.nn.steps import Append, Recent, Retain, Tail
from modgraph.nn.tokens import ClassToken, Position
from modgraph.nn.until import loop
from modgraph.nn.weighted import (
    EveryModule,
    EveryModuleRoute,
    OneModule,
    OneModuleRoute,
    Weighted,
    WeightedDense,
    WeightedFactorised,
)
