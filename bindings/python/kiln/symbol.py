"""Sizes given when a graph is compiled."""

import ctypes
from typing import TYPE_CHECKING, Any, Callable, NoReturn

from ._library import lib, made_text

if TYPE_CHECKING:
    from .graph import Graph


class Symbol(int):
    """A symbolic size: `n`, or a result of `+`, `-` and `*` on sizes and symbols, such as
    `2 * n + 1`. It is allowed wherever the graph takes or returns a size. As an `int` it is its
    number in the C functions, which is negative.
    """

    graph: 'Graph'

    def __new__(cls, graph: 'Graph', number: int) -> 'Symbol':
        self = super().__new__(cls, number)
        self.graph = graph
        return self

    def __repr__(self) -> str:
        return made_text(lib.kiln_graph_symbol_text, self.graph, int(self))

    __str__ = __repr__

    def __add__(self, other: int) -> int:
        return self._combined(lib.kiln_graph_symbol_sum, other)

    def __sub__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        return self + (-1 * other)

    def __rsub__(self, other: int) -> int:
        return -self + other

    def __mul__(self, other: int) -> int:
        return self._combined(lib.kiln_graph_symbol_product, other)

    def __neg__(self) -> int:
        return size_of(self.graph, lib.kiln_graph_symbol_affine(self.graph, int(self), -1, 0))

    __radd__ = __add__
    __rmul__ = __mul__

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError('{} has no number before the graph is compiled; sizes are sums, differences '
                        'and products of symbols'.format(self))

    _refused: Any = _refuse  # of as many parameters as each of these has
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refused
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refused

    def _combined(self, function: Callable[..., int], other: int) -> int:
        if isinstance(other, (float, complex)):
            self._refused()
        if not isinstance(other, int):
            return NotImplemented
        if isinstance(other, Symbol) and other.graph is not self.graph:
            raise ValueError('the sizes {} and {} are of two graphs'.format(self, other))
        return size_of(self.graph, function(self.graph, int(self), int(other)))


def size_of(graph: 'Graph', number: int) -> int:
    """The Python form of a size of the C functions; raises the graph's first error."""
    number = ctypes.c_int64(number).value
    if number < 0:
        return Symbol(graph, number)
    if number == 0:
        graph.check()
    return number
