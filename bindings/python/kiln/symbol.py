"""Sizes given when a graph is compiled."""

import operator
import re
from typing import (TYPE_CHECKING, Any, Callable, Iterable, List, Mapping, NamedTuple, NoReturn,
                    Tuple)

from ._library import lib, made_text

if TYPE_CHECKING:
    from .graph import Graph
    _Size = int  # as sizes are, among which it is allowed
else:
    _Size = object  # it has no number


class Symbol(_Size):
    """A symbolic size: `n`, or a result of `+`, `-` and `*` on sizes and symbols, such as
    `2 * n + 1`. It is allowed wherever the graph takes or returns a size. Equal symbols are equal
    whatever sizes they get, and others are different. They are no integers: conversions to a number
    and comparisons by `<` raise TypeError.

    Attributes:
        graph: its graph
        number: its number in the C functions
    """

    __slots__ = ('graph', '_as_parameter_')
    graph: 'Graph'
    _as_parameter_: int  # what ctypes passes

    def __new__(cls, graph: 'Graph', number: int) -> 'Symbol':
        self = super().__new__(cls)
        self.graph = graph
        self._as_parameter_ = number
        return self

    @property
    def number(self) -> int:
        return self._as_parameter_

    def __repr__(self) -> str:
        return made_text(lib.kiln_graph_symbol_text, self.graph, self.number)

    __str__ = __repr__

    # --- Arithmetic

    def __add__(self, other: int) -> int:
        return self._combined(lib.kiln_graph_symbol_sum, other)

    def __sub__(self, other: int) -> int:
        if not _is_size(other):
            return NotImplemented
        return self + (-1 * other)

    def __rsub__(self, other: int) -> int:
        return -self + other

    def __mul__(self, other: int) -> int:
        return self._combined(lib.kiln_graph_symbol_product, other)

    def __neg__(self) -> int:
        return size_of(self.graph, lib.kiln_graph_symbol_affine(self.graph, self.number, -1, 0))

    def __pos__(self) -> int:
        return self

    __radd__ = __add__
    __rmul__ = __mul__

    def _combined(self, function: Callable[..., int], other: int) -> int:
        if isinstance(other, (float, complex)):
            self.refuse()
        if not _is_size(other):
            return NotImplemented
        if isinstance(other, Symbol):
            if other.graph is not self.graph:
                raise ValueError('the sizes {} and {} are of two graphs'.format(self, other))
            return size_of(self.graph, function(self.graph, self.number, other.number))
        return size_of(self.graph, function(self.graph, self.number, operator.index(other)))

    # --- Comparisons

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Symbol):
            is_equal = self.graph is other.graph and self.number == other.number
        elif _is_size(other):
            is_equal = False
        else:
            return NotImplemented
        if not is_equal and self.graph.looks is not None:
            self.graph.looks.differ(self, other)
        return is_equal

    def __ne__(self, other: object) -> bool:
        is_equal = self.__eq__(other)
        return is_equal if is_equal is NotImplemented else not is_equal

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        if self.graph.looks is not None:  # equality would not be asked
            self.refuse()
        return hash(self.number)

    # --- Refused uses

    def refuse(self, *_: object) -> NoReturn:
        """Raises TypeError, because a number is asked for."""
        if self.graph.looks is not None:
            self.graph.looks.are_refused = True
        raise TypeError('{} has no number before the graph is compiled; sizes are sums, differences '
                        'and products of symbols'.format(self))

    _refused: Any = refuse  # of as many parameters as each of these has
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refused
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = _refused
    __index__ = __int__ = __float__ = __complex__ = __round__ = __abs__ = _refused

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        raise TypeError('a kiln.Symbol is of its graph: it cannot be pickled or copied')


def _is_size(item: object) -> bool:
    """Whether it is an integer, of any type, or a symbol."""
    return isinstance(item, (int, Symbol)) or (
        hasattr(item, '__index__') and getattr(item, 'shape', ()) == ())


def size_of(graph: 'Graph', number: int) -> int:
    """The Python form of a size of the C functions; raises the graph's first error."""
    if number < 0:
        return Symbol(graph, number)
    if number == 0:
        graph.check()
    return number


# --- What a function that builds a graph has seen of its symbols

_TERM = re.compile(r'([+-]?)([^+-]+)')


class Polynomial(NamedTuple):
    """A size as a sum of products: factors, and names of symbols."""

    terms: Tuple[Tuple[int, Tuple[str, ...]], ...]

    @classmethod
    def of(cls, size: int) -> 'Polynomial':
        """A symbol, or an integer, as a polynomial."""
        terms = []
        for sign, product in _TERM.findall(str(size)):
            factor, names = -1 if sign == '-' else 1, []
            for part in product.split('*'):
                if part.isdigit():
                    factor *= int(part)
                else:
                    names.append(part)
            terms.append((factor, tuple(names)))
        return cls(tuple(terms))

    def value(self, sizes: Mapping[str, int]) -> int:
        """Its value for sizes of the symbols."""
        total = 0
        for factor, names in self.terms:
            for name in names:
                factor *= sizes[name]
            total += factor
        return total


class Looks:
    """Comparisons of symbols, by which the code that builds a graph may have decided something.

    Attributes:
        are_refused: whether it has asked for more than comparisons for equality
    """

    def __init__(self) -> None:
        self.are_refused = False
        self._different: List[Tuple[Polynomial, Polynomial]] = []

    def differ(self, size: Symbol, other: Any) -> None:
        """The sizes were found to be different."""
        if isinstance(other, Symbol):
            if other.graph is not size.graph:
                return
        elif other < 0:  # as no size is
            return
        texts = str(size), str(other)
        if any(text.startswith('<=') for text in texts):
            self.are_refused = True
            return
        pair = Polynomial.of(size), Polynomial.of(other)
        if pair not in self._different:
            self._different.append(pair)

    def hold(self, sizes: Mapping[str, int]) -> bool:
        """Whether the comparisons come out the same if the symbols have these sizes."""
        return all(a.value(sizes) != b.value(sizes) for a, b in self._different)


def has_symbols(sizes: Iterable[int]) -> bool:
    """Whether some size is a symbol."""
    return any(isinstance(size, Symbol) for size in sizes)
