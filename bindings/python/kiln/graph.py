"""Graphs under construction."""

import ctypes
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _structs, nn
from ._arrays import host_array
from ._dtypes import DType, DTypeLike
from ._graph_ops import GraphOps
from ._library import ints, lib, made_text, options, text
from ._ops import values
from ._scopes import Scope
from ._table import REDUCERS
from .device import Cancellation, Device
from .executable import Executable, compile_graph
from .symbol import Symbol
from .value import Value


def _shapes(results: Sequence[Tuple[DTypeLike, Sequence[int]]]) -> Tuple[List[Any], Any]:
    """Element types and sizes as structs, and an array of their addresses."""
    shapes = []
    for dtype, dims in results:
        shape = _structs.Shape()
        shape.dtype = DType(dtype).number
        shape.dims, shape.rank = ints(dims)
        shapes.append(shape)
    return shapes, (ctypes.c_void_p * len(shapes))(*(ctypes.addressof(s) for s in shapes))


def _of_loops(recompute: bool) -> Any:
    return ctypes.byref(options(_structs.GradientOptions, lib.kiln_gradient_options_init,
                                recompute_loops=int(recompute)))


def _check_lengths(one: Sequence[Value], other: Sequence[Value]) -> None:
    if len(one) != len(other):
        raise ValueError('{} values, but {} in the second list'.format(len(one), len(other)))


class Graph(GraphOps):
    """A computation from parameters to results, used by one thread at a time. It has a method for
    each op; Python keywords get an underscore (`and_`, `while_`). A region of an op (a reducer, a
    loop's body) is a separate graph, copied into the op.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        if self.closed:
            return '<kiln.Graph closed>'
        result = self.result
        return '<kiln.Graph ({}) -> {}>'.format(
            ', '.join('{}: {!r}'.format(p.name, p.shape) for p in self.parameters),
            'no results yet' if result is None else repr(result.shape))

    # --- Ops outside of the op table

    def parameter(self, dtype: DTypeLike, dims: Sequence[int] = (), name: str = '') -> Value:
        """The next input. Sizes are constants or symbols (`symbol`)."""
        return self.value(lib.kiln_op_parameter(self, DType(dtype).number, *ints(dims),
                                                *text(name)))

    def parameter_like(self, value: Value, name: str = '') -> Value:
        """The next input, with the shape of a value, possibly a tuple or of another graph."""
        return self.value(lib.kiln_op_parameter_like(self, value.graph, value.id, *text(name)))

    def constant(self, array: Any, dtype: Optional[DTypeLike] = None) -> Value:
        """A copy of an array: an object with NumPy's array interface or Python's buffer protocol, a
        number, or lists of numbers.

        Args:
            dtype: the element type of numbers, by default NumPy's choice; or of an array whose own
                type is not one of the library's
        """
        host = host_array(array, dtype, copy=True)
        return self.value(lib.kiln_op_constant(self, host.dtype, *ints(host.dims), host.address,
                                               host.byte_size))

    def scalar(self, dtype: DTypeLike, value: complex) -> Value:
        """A constant without dimensions; of a complex type also a complex number."""
        kind = DType(dtype)
        if kind.kind in ('signed', 'unsigned') and isinstance(value, int) and abs(value) >> 53:
            data: Any = (ctypes.c_int64 if value < 0 else ctypes.c_uint64)(value)
        elif kind.kind == 'complex' and isinstance(value, complex):
            part = ctypes.c_float if kind.bits == 64 else ctypes.c_double
            data = (part * 2)(value.real, value.imag)
        else:
            return self.value(lib.kiln_op_scalar(self, kind.number, value))
        return self.value(lib.kiln_op_constant(self, kind.number, *ints(()),
                                               ctypes.addressof(data), ctypes.sizeof(data)))

    def broadcast_like(self, operand: Value, like: Value, dimensions: Iterable[int] = ()) -> Value:
        """`broadcast` to the dimensions of `like`: `dimensions` maps each dimension of the operand
        to one of the result.
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
                    results: Sequence[Tuple[DTypeLike, Sequence[int]]], backend_config: str = '',
                    has_side_effect: bool = False,
                    aliases: Optional[Sequence[int]] = None) -> Value:
        """Calls a function registered with `Context.register_call`.

        Args:
            results: element type and sizes of each result; several are a tuple
            backend_config: a text for the function
            has_side_effect: it is run even if its results are unused
            aliases: for each result the number of the operand that it shares memory with, or -1
        """
        self.has_effects = self.has_effects or has_side_effect
        shapes, pointers = _shapes(results)
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

    def host_callback(self, callback: str, operands: Sequence[Value],
                      results: Sequence[Tuple[DTypeLike, Sequence[int]]],
                      has_side_effect: bool = False) -> Value:
        """Calls a function on the host, in a session.

        Args:
            results: element type and sizes of each result, which may be of `bounded_size`; several
                are a tuple
            has_side_effect: it is run even if its results are unused
        """
        self.has_effects = self.has_effects or has_side_effect
        shapes, pointers = _shapes(results)
        ids = (ctypes.c_uint64 * len(operands))(*(v.id for v in operands))
        return self.value(lib.kiln_op_host_callback(self, *text(callback), ids, len(operands),
                                                    pointers, len(shapes), int(has_side_effect)))

    def symbol(self, name: str) -> Symbol:
        """A size given when the graph is compiled; sums, differences and products of it are sizes
        as well.
        """
        number = lib.kiln_graph_symbol(self, *text(name))
        if number == 0:
            self.check()
        return Symbol(self, number)

    def bounded_size(self, bound: int) -> Symbol:
        """A size known during a run only, from 0 to `bound`, as results of `nonzero` have one. It is
        allowed in shapes; there is no arithmetic on it.
        """
        number = lib.kiln_graph_bounded_size(self, bound)
        if number == 0:
            self.check()
        return Symbol(self, number)

    # --- Scopes and marks, for sessions: `compile` compiles the whole graph for one device

    def device(self, name: Optional[str]) -> Scope:
        """A scope of ops that are requested to run on a device: `with graph.device('GPU:0'):`. The
        innermost one counts; None: no device is requested.
        """
        name_and_length = text(name or '')
        return Scope(lambda: lib.kiln_graph_push_device(self, *name_and_length),
                     lambda: lib.kiln_graph_pop_device(self))

    def jit_scope(self, compile_ops: bool = True) -> Scope:
        """A scope of ops that a session compiles together, or never compiles. Ops of different
        outermost scopes are not compiled together.
        """
        return Scope(lambda: lib.kiln_graph_push_jit_scope(self, int(compile_ops)),
                     lambda: lib.kiln_graph_pop_jit_scope(self))

    def name_scope(self, name: str) -> Scope:
        """A scope of names: the op names of ops inside begin with those of the scopes, as in
        "layer/add", and are made unique as in TensorFlow.
        """
        name_and_length = text(name)
        return Scope(lambda: lib.kiln_graph_push_name_scope(self, *name_and_length),
                     lambda: lib.kiln_graph_pop_name_scope(self))

    def control_dependencies(self, after: Optional[Iterable[Value]]) -> Scope:
        """A scope of ops that a session runs after values, also those of outer scopes; None: after
        no scope's values.
        """
        ids, count = values(after or ())
        return Scope(lambda: lib.kiln_graph_push_control_dependencies(self, ids, count),
                     lambda: lib.kiln_graph_pop_control_dependencies(self))

    def add_control_dependency(self, before: Value, after: Value) -> None:
        """Makes a session run `after` after `before`, without a use of its value."""
        lib.kiln_graph_add_control_dependency(self, before.id, after.id)

    # --- Functions of kiln.nn

    broadcast_to = staticmethod(nn.broadcast_to)
    where = staticmethod(nn.where)
    clip = staticmethod(nn.clip)
    softmax = staticmethod(nn.softmax)
    log_softmax = staticmethod(nn.log_softmax)
    gelu = staticmethod(nn.gelu)
    silu = staticmethod(nn.silu)
    layer_norm = staticmethod(nn.layer_norm)
    rms_norm = staticmethod(nn.rms_norm)
    mean = staticmethod(nn.mean)
    variance = staticmethod(nn.variance)
    argmax = staticmethod(nn.argmax)
    argmin = staticmethod(nn.argmin)
    take = staticmethod(nn.take)
    one_hot = staticmethod(nn.one_hot)
    attention = staticmethod(nn.attention)

    # --- Derivatives

    def gradient(self, value: Value, by: Sequence[Value],
                 recompute_loops: bool = False) -> List[Value]:
        """The gradients of a scalar by values.

        Args:
            recompute_loops: only the state of loops is stored for each iteration, and the body is
                computed again
        """
        ids, count = values(by)
        made = (ctypes.c_uint64 * count)()
        lib.kiln_graph_gradient(self, value.id, ids, count, _of_loops(recompute_loops), made)
        return [self.value(number) for number in made]

    def vjp(self, of: Sequence[Value], cotangents: Sequence[Value], by: Sequence[Value],
            recompute_loops: bool = False) -> List[Value]:
        """The vector-Jacobian product: for each value in `by` the sum over `of` of the cotangent
        times the derivative.
        """
        _check_lengths(of, cotangents)
        ids, count = values(by)
        made = (ctypes.c_uint64 * count)()
        lib.kiln_graph_vjp(self, values(of)[0], values(cotangents)[0], len(of), ids, count,
                           _of_loops(recompute_loops), made)
        return [self.value(number) for number in made]

    def jvp(self, of: Sequence[Value], by: Sequence[Value],
            tangents: Sequence[Value]) -> List[Value]:
        """The Jacobian-vector product: the derivatives of `of` in the direction of the tangents."""
        _check_lengths(by, tangents)
        made = (ctypes.c_uint64 * len(of))()
        lib.kiln_graph_jvp(self, values(of)[0], len(of), values(by)[0], values(tangents)[0],
                           len(by), None, made)
        return [self.value(number) for number in made]

    def stop_gradient(self, operand: Value) -> Value:
        """The operand, a constant for all derivatives."""
        return self.value(lib.kiln_op_stop_gradient(self, operand.id))

    def set_gradient(self, backward: Optional['Graph']) -> None:
        """Sets the derivative of calls of this graph that are made afterwards.

        Args:
            backward: a graph that takes the parameters, the results and their cotangents, and whose
                results are the cotangents of the parameters; None: that of the graph's ops
        """
        lib.kiln_graph_set_gradient(self, backward)

    # --- The graph as a whole

    @property
    def parameters(self) -> List[Value]:
        """The inputs."""
        return [self.value(lib.kiln_graph_parameter(self, i))
                for i in range(lib.kiln_graph_parameter_count(self))]

    @property
    def result(self) -> Optional[Value]:
        """The result of the graph; a tuple for several values."""
        number = lib.kiln_graph_result(self)
        return self.value(number) if number else None

    def set_results(self, *values: Value) -> None:
        """Sets the results of the graph."""
        ids = (ctypes.c_uint64 * len(values))(*(v.id for v in values))
        lib.kiln_graph_set_results(self, ids, len(values))

    def find(self, name: str) -> Value:
        """The value with a name in HLO text, without the '%', or the only one with an op name."""
        place = ctypes.c_uint64()
        lib.kiln_graph_find_value(self, *text(name), ctypes.byref(place))
        return self.value(place.value)

    def to_hlo_text(self) -> str:
        """The graph as HLO text, readable by XLA too."""
        return made_text(lib.kiln_graph_to_hlo_text, self)

    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
        return made_text(lib.kiln_graph_to_dot, self)

    def compile(self, device: Optional[Device] = None, symbols: Optional[Mapping[str, int]] = None,
                disabled_passes: Sequence[str] = (), verify: bool = False,
                dump_folder: Optional[str] = None, optimization: str = 'auto',
                allow_tf32: bool = False, aliases: Optional[Mapping[int, int]] = None,
                must_donate: bool = False, cancel: Optional[Cancellation] = None,
                timeout: Optional[float] = None,
                frozen: Sequence[Union[int, str]] = (),
                memory_limit_bytes: int = 0, dump_forms: Sequence[str] = (),
                allow_bf16: bool = False, keep_subnormals: bool = False) -> Executable:
        """Compiles the whole graph, or fails and names the unsupported op. Ctrl-C cancels it.

        Args:
            device: the target; None: CPU:0
            symbols: a size for each symbol
            disabled_passes: names of passes to disable
            verify: verify the graph after every pass, for finding mistakes of the compiler
            dump_folder: a folder to write every stage into
            optimization: 'auto', 'quick' to compile elementwise kernels in a third of the time, or
                'full' to optimise all code even in large programs
            allow_tf32: a GPU's tf32 units may compute products of f32, with 10 bits of the factors'
                mantissas
            aliases: for numbers of results the number of the argument, of the same shape, whose
                memory the result shares when the argument is donated
            must_donate: executions must donate these arguments; other aliased arguments may be
                donated, and are copied otherwise
            cancel: the means to cancel the compilation
            timeout: the time limit in seconds
            frozen: numbers and names of arguments that are bound once (`Executable.bind`), and are
                no arguments of executions; in names, '*' stands for any characters
            memory_limit_bytes: the most temporaries of a run; 0: no limit. Results are computed
                again instead of being kept, as far as is needed
            dump_forms: the forms of modules in the folder: 'text', 'dot', 'html' and 'svg'; none:
                the input and the result as text, stages between them as 'dot'
            allow_bf16: a CPU's bf16 units may compute products of f32, with 7 bits of the factors'
                mantissas
            keep_subnormals: products of bf16 keep subnormal numbers, which a CPU's bf16 units treat
                as 0
        """
        return compile_graph(self, device, symbols or {}, disabled_passes, verify, dump_folder,
                             optimization, (allow_tf32, allow_bf16, keep_subnormals),
                             aliases or {}, must_donate, cancel, timeout, frozen,
                             memory_limit_bytes, dump_forms)
