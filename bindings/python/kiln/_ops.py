"""What the methods for ops are made with: conversions of their arguments to those of C."""

import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Tuple, cast

from ._dtypes import DTypeLike, dtype_number
from ._handle import Handle
from ._library import ints, lib
from ._table import DIRECTIONS
from .symbol import Looks
from .value import Value

if TYPE_CHECKING:
    from .context import Context
    from .graph import Graph


class GraphBase(Handle):
    """A graph that knows its values, and how to begin.

    Attributes:
        context: the context that it is of
        has_effects: whether ops of its methods have side effects
        looks: what the code that builds it sees of its symbols; None: nobody asks
    """

    __slots__ = ('context', '_values', 'has_effects', 'looks')
    _noun = 'graph'

    def __init__(self, context: 'Context', address: int) -> None:
        super().__init__(address)
        self.context = context
        self.has_effects = False
        self.looks: Optional[Looks] = None
        self._values: 'weakref.WeakValueDictionary[int, Value]' = weakref.WeakValueDictionary()

    def value(self, number: int) -> Value:
        """The value of an id; raises the graph's first mistake where that is 0."""
        if number == 0:
            self.check()
            raise KeyError('there is no such value')
        value = self._values.get(number)
        if value is None:
            value = self._values[number] = Value(cast('Graph', self), number)
        return value

    def check(self) -> None:
        """Raises the first mistake that was made in building the graph."""
        lib.kiln_graph_status(self)


def values(items: Iterable[Value]) -> Tuple[Any, int]:
    """The pair of arguments that a list of values is."""
    ids = [item.id for item in items]
    return (ctypes.c_uint64 * len(ids))(*ids), len(ids)


def graphs(items: 'Iterable[Graph]') -> Tuple[Any, int]:
    """The pair of arguments that a list of graphs is."""
    addresses = [item._as_parameter_ for item in items]
    return (ctypes.c_void_p * len(addresses))(*addresses), len(addresses)


def direction_number(direction: str) -> int:
    """The number of an order."""
    if direction not in DIRECTIONS:
        raise ValueError('{!r} is none of {}'.format(direction, ', '.join(DIRECTIONS)))
    return DIRECTIONS[direction]


def optional_dtype_number(dtype: Optional[DTypeLike]) -> int:
    """The number of an element type; 0 for none."""
    return 0 if dtype is None else dtype_number(dtype)


def _per_dimension(default: int, first: Iterable[int], second: Iterable[int],
                   third: Optional[Iterable[int]]) -> List[Any]:
    lists = [list(first), list(second)]
    lists.append([default] * len(lists[0]) if third is None else list(third))
    if len({len(each) for each in lists}) != 1:
        raise ValueError('the lists must have an element for each dimension')
    return [ints(each)[0] for each in lists] + [len(lists[0])]


def slices(start: Iterable[int], limit: Iterable[int],
           stride: Optional[Iterable[int]]) -> List[Any]:
    """Start, limit and stride for each dimension; a stride is 1 unless it is given."""
    return _per_dimension(1, start, limit, stride)


def padding(low: Iterable[int], high: Iterable[int],
            interior: Optional[Iterable[int]]) -> List[Any]:
    """Padding for each dimension; there is none inside unless it is given."""
    return _per_dimension(0, low, high, interior)


def window(*lists: Optional[Iterable[int]]) -> List[Any]:
    """The size per dimension, then lists that may be None, for what is usual."""
    given = [None if each is None else list(each) for each in lists]
    rank = len(given[0] or ())
    if any(each is not None and len(each) != rank for each in given):
        raise ValueError('the lists must have an element for each dimension')
    return [None if each is None else ints(each)[0] for each in given] + [rank]


def convolution_window(*lists: Optional[Iterable[int]]) -> List[Any]:
    """A window, and whether each dimension is reversed."""
    *others, rank = window(*lists[:-1])
    reversal = None
    if lists[-1] is not None:
        truths = [int(truth) for truth in lists[-1]]
        if len(truths) != rank:
            raise ValueError('the lists must have an element for each dimension')
        reversal = (ctypes.c_int32 * rank)(*truths)
    return others + [reversal, rank]


def groups(items: Iterable[Iterable[int]]) -> List[Any]:
    """Lists of numbers as all numbers in a row, and the lengths."""
    lists = [list(group) for group in items]
    numbers, _ = ints([number for each in lists for number in each])
    sizes, count = ints([len(each) for each in lists])
    return [numbers, sizes, count]
