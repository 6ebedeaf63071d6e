"""Signatures of a function that differ in sizes only: one graph with symbols may serve them."""

import threading
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

from .symbol import Looks

if TYPE_CHECKING:
    from .device import Device
    from .executable import Executable
    from .graph import Graph
    from .session import Function

# The sizes of all arguments of a signature, argument by argument.
Sizes = Tuple[Tuple[int, ...], ...]


class Layout:
    """Sizes of arguments, some of them symbols. Sizes that were equal in all signatures known are
    one symbol, or a number if they were the same number in all.

    Attributes:
        dims: for each argument its sizes, as numbers and names of symbols
    """

    def __init__(self, known: Sequence[Sizes]) -> None:
        names: Dict[Tuple[int, ...], str] = {}
        self.dims: List[List[Union[int, str]]] = []
        for argument in zip(*known):
            dims: List[Union[int, str]] = []
            for sizes in zip(*argument):
                if len(set(sizes)) == 1:
                    dims.append(sizes[0])
                else:
                    dims.append(names.setdefault(sizes, 'n{}'.format(len(names))))
            self.dims.append(dims)

    def sizes(self, signature: Sizes) -> Optional[Dict[str, int]]:
        """The sizes of the symbols in a signature; None if it does not fit."""
        found: Dict[str, int] = {}
        for dims, sizes in zip(self.dims, signature):
            for dim, size in zip(dims, sizes):
                if (dim if isinstance(dim, int) else found.setdefault(dim, size)) != size:
                    return None
        return found

    def graph_dims(self, graph: 'Graph') -> List[List[int]]:
        """The sizes for parameters of a graph, whose symbols are made."""
        names = {dim for dims in self.dims for dim in dims if isinstance(dim, str)}
        symbols = {name: graph.symbol(name) for name in sorted(names)}
        return [[dim if isinstance(dim, int) else symbols[dim] for dim in dims]
                for dims in self.dims]


class Symbolic:
    """A graph with symbols, and the signatures that it serves.

    Attributes:
        function: the function of the graph; None: it is compiled for each signature
        structure: the structure of the results
    """

    def __init__(self, layout: Layout, graph: 'Graph', function: 'Optional[Function]',
                 structure: Any) -> None:
        assert graph.looks is not None
        self._layout, self._looks = layout, graph.looks
        graph.looks = None  # it is complete
        self._graph = graph if function is None else None
        self._lock = threading.Lock()  # a graph is used by one thread at a time
        self.function, self.structure = function, structure

    def compile(self, device: 'Device', signature: Sizes) -> 'Executable':
        """The graph compiled for a signature that it serves."""
        assert self._graph is not None
        with self._lock:
            return self._graph.compile(device, self._layout.sizes(signature))

    def serves(self, signature: Sizes) -> bool:
        """Whether the Python function would have made the same graph for the signature."""
        sizes = self._layout.sizes(signature)
        return sizes is not None and are_plain(sizes) and self._looks.hold(sizes)

    def fits(self, signature: Sizes) -> bool:
        """Whether no other symbols are needed for the signature."""
        return self._layout.sizes(signature) is not None


def are_plain(sizes: Dict[str, int]) -> bool:
    """Whether symbols may stand for the sizes: arrays without elements, and dimensions of size 1,
    which are broadcast, have rules of their own."""
    return all(size > 1 for size in sizes.values())


class Family:
    """What is known of the signatures of one structure, with element types and ranks.

    Attributes:
        lock: held while the function is traced with symbols
        known: the signatures by which symbols were chosen; the first one has none
        symbolics: the graphs with symbols, the last one with the most
        is_closed: whether no further symbols are tried
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.known: List[Sizes] = []
        self.symbolics: List[Symbolic] = []
        self.is_closed = False

    def find(self, signature: Sizes) -> Optional[Symbolic]:
        """A graph that serves the signature."""
        return next((s for s in reversed(self.symbolics) if s.serves(signature)), None)

    def next_layout(self, signature: Sizes) -> Optional[Layout]:
        """The symbols to be tried for a new signature that no graph serves; None: none."""
        if self.is_closed or not self.known or any(s.fits(signature) for s in self.symbolics):
            return None
        layout = Layout(self.known + [signature])
        sizes = layout.sizes(signature)
        return layout if sizes and are_plain(sizes) else None
