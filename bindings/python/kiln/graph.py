"""Graphs under construction."""

import ctypes
import numbers
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional,
                    Sequence, Tuple, Union)

from . import _ops, _structs
from ._arrays import DType, Shape, dtype_number, host_array, shape_of
from ._handle import Handle
from ._library import decoded, ints, lib, made_text, options, text
from ._table import DTYPES, REDUCERS
from .device import Device
from .executable import Executable, compile_graph

if TYPE_CHECKING:
    from .context import Context

Operand = Union['Value', complex]


class Value:
    """A value in a graph. Operators with another value of the same dimensions, or a number, add
    ops to the graph.
    """

    __slots__ = ('graph', 'id')

    def __init__(self, graph: 'Graph', number: int) -> None:
        self.graph = graph
        self.id = number

    @property
    def shape(self) -> Shape:
        """Element type, sizes and bytes."""
        return shape_of(lib.kiln_graph_value_shape, self.graph, self.id)

    @property
    def name(self) -> str:
        """Its name in HLO text."""
        return decoded(lib.kiln_graph_value_name, self.graph, self.id) or ''

    def set_op_name(self, name: str) -> None:
        """Says where it comes from, for dumps and messages."""
        lib.kiln_graph_set_op_name(self.graph, self.id, *text(name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        shape = self.shape
        return '<kiln.Value {} = {}[{}]>'.format(self.name, shape.dtype,
                                                 ','.join(map(str, shape.dims)))

    def _lift(self, other: Operand) -> 'Value':
        """A number as a value of this one's shape."""
        if isinstance(other, Value):
            return other
        scalar = self.graph.scalar(self.shape.dtype, other)
        return self.graph.broadcast_like(scalar, self) if self.shape.dims else scalar


def _operator(op: str, swapped: bool = False, **attributes: Any) -> Callable[[Value, Any], Any]:
    def operate(self: Value, other: Any) -> Any:
        if not isinstance(other, (Value, numbers.Complex)):
            return NotImplemented
        pair = (self, self._lift(other))
        return getattr(self.graph, op)(*(reversed(pair) if swapped else pair), **attributes)
    return operate


for _name, _op in (('add', 'add'), ('sub', 'subtract'), ('mul', 'multiply'),
                   ('truediv', 'divide'), ('mod', 'remainder'), ('pow', 'power'),
                   ('and', 'and_'), ('or', 'or_'), ('xor', 'xor')):
    setattr(Value, '__{}__'.format(_name), _operator(_op))
    setattr(Value, '__r{}__'.format(_name), _operator(_op, swapped=True))
for _name in ('lt', 'le', 'gt', 'ge'):
    setattr(Value, '__{}__'.format(_name), _operator('compare', direction=_name.upper()))
for _name, _op in (('neg', 'negate'), ('abs', 'abs'), ('invert', 'not_')):
    setattr(Value, '__{}__'.format(_name),
            lambda self, op=_op: getattr(self.graph, op)(self))


class Graph(Handle):
    """A computation from parameters to results, used by one thread at a time. It has a method for
    each op; those that are keywords of Python end in an underscore (`and_`, `while_`). A region of
    an op (a reducer, a loop's body) is a graph of its own, which the op copies.
    """

    _noun = 'graph'

    def __init__(self, context: 'Context', address: int) -> None:
        super().__init__(address)
        self.context = context

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Callable[..., Value]: ...

    def value(self, number: int) -> Value:
        """The value of an id; raises the graph's first mistake where that is 0."""
        if number == 0:
            self.check()
            raise KeyError('there is no such value')
        return Value(self, number)

    def check(self) -> None:
        """Raises the first mistake that was made in building the graph."""
        lib.kiln_graph_status(self)

    # --- What the op table does not hold

    def parameter(self, dtype: DType, dims: Sequence[int] = (), name: str = '') -> Value:
        """The next input. Sizes are constants or symbols (`symbol`)."""
        return self.value(lib.kiln_op_parameter(self, dtype_number(dtype), *ints(dims),
                                                *text(name)))

    def parameter_like(self, value: Value, name: str = '') -> Value:
        """The next input, of the shape of a value, which may be of another graph and a tuple."""
        return self.value(lib.kiln_op_parameter_like(self, value.graph, value.id, *text(name)))

    def constant(self, array: Any, dtype: Optional[DType] = None) -> Value:
        """A copy of an array: what has NumPy's array interface or Python's buffer protocol."""
        host = host_array(array, dtype, copy=True)
        return self.value(lib.kiln_op_constant(self, host.dtype, *ints(host.dims), host.address,
                                               host.byte_size))

    def scalar(self, dtype: DType, value: complex) -> Value:
        """A constant without dimensions; of a complex type also a complex number."""
        number = dtype_number(dtype)
        part = {DTYPES['c64']: ctypes.c_float, DTYPES['c128']: ctypes.c_double}.get(number)
        if part is None or not isinstance(value, complex):
            return self.value(lib.kiln_op_scalar(self, number, value))
        data = (2 * part)(value.real, value.imag)
        return self.value(lib.kiln_op_constant(self, number, *ints(()), ctypes.addressof(data),
                                               ctypes.sizeof(data)))

    def broadcast_like(self, operand: Value, like: Value, dimensions: Iterable[int] = ()) -> Value:
        """`broadcast` to the dimensions of `like`: `dimensions` says for each dimension of the
        operand the one that it becomes.
        """
        return self.value(lib.kiln_op_broadcast_like(self, operand.id, like.id, *ints(dimensions)))

    def reshape_like(self, operand: Value, like: Value) -> Value:
        """`reshape` to the dimensions of `like`."""
        return self.value(lib.kiln_op_reshape_like(self, operand.id, like.id))

    def iota_like(self, like: Value, iota_dimension: int) -> Value:
        """`iota` of the shape of `like`."""
        return self.value(lib.kiln_op_iota_like(self, like.id, iota_dimension))

    def reduce_by(self, operand: Value, dimensions: Iterable[int], reducer: str = 'SUM') -> Value:
        """`reduce` of one operand with a common reducer: SUM, PRODUCT, MAX, MIN, AND, OR, XOR."""
        return self.value(lib.kiln_op_reduce_by(self, operand.id, *ints(dimensions),
                                                REDUCERS[reducer.upper()]))

    def custom_call(self, target: str, operands: Sequence[Value],
                    results: Sequence[Tuple[DType, Sequence[int]]], backend_config: str = '',
                    has_side_effect: bool = False,
                    aliases: Optional[Sequence[int]] = None) -> Value:
        """Calls a function that is registered with `Context.register_call`.

        Args:
            results: element type and sizes of each result; several are a tuple
            backend_config: a text for the function
            has_side_effect: it is run though nobody needs its results
            aliases: for each result the number of the operand in whose memory the function finds
                it, or -1
        """
        shapes = []
        for dtype, dims in results:
            shape = _structs.Shape()
            shape.dtype = dtype_number(dtype)
            shape.dims, shape.rank = ints(dims)
            shapes.append(shape)
        pointers = (ctypes.c_void_p * len(shapes))(*(ctypes.addressof(s) for s in shapes))
        config, config_length = text(backend_config)
        fields: Dict[str, Any] = {'backend_config': config, 'backend_config_length': config_length,
                                  'has_side_effect': int(has_side_effect)}
        if aliases is not None:
            fields['aliases'], fields['alias_count'] = ints(aliases)
        made_options = options(_structs.CustomCallOptions, lib.kiln_custom_call_options_init,
                               **fields)
        ids = (ctypes.c_uint64 * len(operands))(*(v.id for v in operands))
        return self.value(lib.kiln_op_custom_call(self, *text(target), ids, len(operands),
                                                  pointers, len(shapes),
                                                  ctypes.byref(made_options)))

    def symbol(self, name: str) -> int:
        """A size that is put in when the graph is compiled."""
        number = lib.kiln_graph_symbol(self, *text(name))
        if number == 0:
            self.check()
        return number

    # --- The graph as a whole

    @property
    def parameters(self) -> List[Value]:
        """The inputs."""
        return [self.value(lib.kiln_graph_parameter(self, i))
                for i in range(lib.kiln_graph_parameter_count(self))]

    @property
    def result(self) -> Optional[Value]:
        """What the graph computes; a tuple where that are several values."""
        number = lib.kiln_graph_result(self)
        return Value(self, number) if number else None

    def set_results(self, *values: Value) -> None:
        """Says what the graph computes."""
        ids = (ctypes.c_uint64 * len(values))(*(v.id for v in values))
        lib.kiln_graph_set_results(self, ids, len(values))

    def find(self, name: str) -> Value:
        """The value of a name in HLO text, without the '%'."""
        place = ctypes.c_uint64()
        lib.kiln_graph_find_value(self, *text(name), ctypes.byref(place))
        return Value(self, place.value)

    def to_hlo_text(self) -> str:
        """The graph as HLO text, which XLA reads too."""
        return made_text(lib.kiln_graph_to_hlo_text, self)

    def to_dot(self) -> str:
        """The graph in Graphviz' language."""
        return made_text(lib.kiln_graph_to_dot, self)

    def compile(self, device: Optional[Device] = None, symbols: Optional[Mapping[str, int]] = None,
                disabled_passes: Sequence[str] = (), verify: bool = False,
                dump_folder: Optional[str] = None, optimization: str = 'auto',
                allow_tf32: bool = False) -> Executable:
        """Compiles the whole graph, or fails and names the op that cannot be compiled.

        Args:
            device: what for; None: CPU:0
            symbols: a size for each symbol
            disabled_passes: names of passes to leave out
            verify: check the graph after every pass, for finding mistakes of the compiler
            dump_folder: a folder to write every stage into
            optimization: 'auto', 'quick' to compile elementwise kernels in a third of the time, or
                'full' to optimise all code even in large programs
            allow_tf32: products of f32 may be made by a GPU's tf32 units, which keep 10 bits of
                their factors' mantissas
        """
        return compile_graph(self, device, symbols or {}, disabled_passes, verify, dump_folder,
                             optimization, allow_tf32)


_ops.add_methods(Graph)
