"""The definition of every router, as message passing of torch_geometric.

torch_geometric takes longer to import than torch, so nothing imports this package before a route is to have this form.
"""

from modgraph.nn.message_passing.base import MessagePassing
from modgraph.nn.message_passing.selected import EveryEdgeMessagePassing, SelectedMessagePassing
from modgraph.nn.message_passing.weighted import WeightedMessagePassing
