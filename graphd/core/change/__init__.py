"""`workgraph/change`, the interchange form of a graph: decode, fold, and version 1 written.

Owns its keys and its rules; never touches a file, and never changes a graph.
"""

from graphd.core.change.decode import KIND, decode
from graphd.core.change.export import encode_v1, encode_v2
from graphd.core.change.fold import fold
from graphd.core.change.reading import MalformedChange
from graphd.core.change.values import Folded, GraphValue, HistoryValue, NodeValue, Tombstone

__all__ = [
    "KIND",
    "Folded",
    "GraphValue",
    "HistoryValue",
    "MalformedChange",
    "NodeValue",
    "Tombstone",
    "decode",
    "encode_v1",
    "encode_v2",
    "fold",
]
