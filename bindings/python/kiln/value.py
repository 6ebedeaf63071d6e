"""Values of graphs, with the operators, methods and indexing of NumPy's arrays."""

import ctypes
import operator
from typing import TYPE_CHECKING, Any, Iterator, Optional, Tuple, Union

from . import _ufuncs
from ._arrays import Shape, Shaped, shape_of
from ._dtypes import DType, DTypeLike
from ._handle import refuse_to_copy
from ._library import decoded, lib, text
from ._operators import (Axis, as_number, axes_of, binary, broadcast_to, count, index, integers,
                         matmul, quotient, reduce, refuse_out)
from ._structs import Shape as ShapeStruct
from ._table import JIT_MODES
from .symbol import size_of

if TYPE_CHECKING:
    from .graph import Graph

# Other operands of operators: numbers, and arrays as constants.
Operand = Union['Value', complex, Any]

_NO_ELEMENTS = ('a kiln.Value has no elements before its graph is compiled and run; {}'
                'graph.compile()(...) gives buffers')


class Value(Shaped):
    """A value in a graph. Operators, methods and NumPy's functions on it add ops to the graph, with
    the semantics of NumPy's arrays:

    - dimensions are broadcast; indices are integers, slices, `None` and `...`;
    - a number takes the value's element type, which must be able to hold a number of its kind: a
      float cannot be combined with integers. An array is a constant, and like another value it must
      have the same element type: `astype` converts, and nothing is converted implicitly;
    - comparisons, `==` and `!=` among them, are ops, so a value has no truth value. Values are
      hashed by identity: a dict may have them as keys.

    Attributes:
        graph: its graph
        id: its number in the C ABI
    """

    __slots__ = ('graph', 'id', '_shape', '_is_number', '__weakref__')
    __array_priority__ = 1000  # NumPy's arrays leave operators to it
    graph: 'Graph'
    id: int
    _shape: Optional[Shape]
    # Whether it is a number, as arguments of `kiln.jit` may be, of another value's type.
    _is_number: bool

    def __init__(self, graph: 'Graph', number: int) -> None:
        self.graph = graph
        self.id = number
        self._shape = None
        self._is_number = False

    # --- Properties

    @property
    def shape(self) -> Shape:
        """Its sizes, as a tuple; also its element type and bytes."""
        if self._shape is None:
            shape = shape_of(lib.kiln_graph_value_shape, self.graph, self.id)
            if shape.byte_size < 0:
                shape = Shape(shape.dtype, [size_of(self.graph, n) for n in shape], -1)
            self._shape = shape
        return self._shape

    @property
    def name(self) -> str:
        """Its name in HLO text."""
        return decoded(lib.kiln_graph_value_name, self.graph, self.id) or ''

    @property
    def op_name(self) -> str:
        """Its origin, for dumps and messages; empty if there is none."""
        return decoded(lib.kiln_graph_value_op_name, self.graph, self.id) or ''

    @property
    def device(self) -> Optional[str]:
        """The device requested for its op, as it was given; None if there is none. Can be set."""
        return decoded(lib.kiln_graph_value_device, self.graph, self.id)

    @device.setter
    def device(self, name: Optional[str]) -> None:
        lib.kiln_graph_set_device(self.graph, self.id, *text(name or ''))

    def set_jit(self, compile_op: Optional[bool]) -> None:
        """Sets whether a session compiles its op; None: the session decides."""
        mode = {None: 'DEFAULT', True: 'ON', False: 'OFF'}[compile_op]
        lib.kiln_graph_set_jit(self.graph, self.id, JIT_MODES[mode])

    def set_must_compile(self, must_compile: bool = True) -> None:
        """Sets whether a session must compile the called graph as a whole; for results of `call`."""
        lib.kiln_graph_set_must_compile(self.graph, self.id, int(must_compile))

    def set_checkpoint(self, checkpoint: bool = True) -> None:
        """Sets whether gradients compute the called graph again, instead of storing its values; for
        results of `call`.
        """
        lib.kiln_graph_set_checkpoint(self.graph, self.id, int(checkpoint))

    def frontend_attribute(self, key: str) -> Optional[str]:
        """The text of a frontend attribute of its op; None if there is none."""
        return decoded(lib.kiln_graph_value_frontend_attribute, self.graph, self.id, *text(key))

    def set_frontend_attribute(self, key: str, content: Optional[str]) -> None:
        """Sets a frontend attribute of its op; None removes it."""
        value = (None, 0) if content is None else text(content)
        lib.kiln_graph_set_frontend_attribute(self.graph, self.id, *text(key), *value)

    def set_op_name(self, name: str) -> None:
        """Sets its origin, for dumps and messages."""
        lib.kiln_graph_set_op_name(self.graph, self.id, *text(name))

    def __repr__(self) -> str:
        return '<kiln.Value {} = {}>'.format(self.name, self.shape)

    def __len__(self) -> int:
        if self.shape.dtype == 'tuple':
            return tuple_size(self)
        if not self.shape:
            raise TypeError('a scalar has no length')
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator['Value']:
        return (self[i] for i in range(len(self)))

    # --- Refused uses

    def __bool__(self) -> bool:
        raise TypeError(_NO_ELEMENTS.format('use & | ~, graph.select or graph.conditional, or '))

    def _no_number(self) -> Any:
        raise TypeError(_NO_ELEMENTS.format(''))

    __float__ = __int__ = __complex__ = _no_number

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        raise TypeError(_NO_ELEMENTS.format(''))

    def __contains__(self, item: object) -> bool:
        raise TypeError(_NO_ELEMENTS.format(''))

    __reduce_ex__ = refuse_to_copy
    __hash__ = object.__hash__

    # --- Operators

    def __add__(self, other: Operand) -> 'Value':
        return binary('add', self, other)

    def __radd__(self, other: Operand) -> 'Value':
        return binary('add', other, self)

    def __sub__(self, other: Operand) -> 'Value':
        return binary('subtract', self, other)

    def __rsub__(self, other: Operand) -> 'Value':
        return binary('subtract', other, self)

    def __mul__(self, other: Operand) -> 'Value':
        return binary('multiply', self, other)

    def __rmul__(self, other: Operand) -> 'Value':
        return binary('multiply', other, self)

    def __truediv__(self, other: Operand) -> 'Value':
        return binary('divide', self, other)

    def __rtruediv__(self, other: Operand) -> 'Value':
        return binary('divide', other, self)

    def __floordiv__(self, other: Operand) -> 'Value':
        return binary('floor_divide', self, other)

    def __rfloordiv__(self, other: Operand) -> 'Value':
        return binary('floor_divide', other, self)

    def __mod__(self, other: Operand) -> 'Value':
        return binary('modulo', self, other)

    def __rmod__(self, other: Operand) -> 'Value':
        return binary('modulo', other, self)

    def __divmod__(self, other: Operand) -> Tuple['Value', 'Value']:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> Tuple['Value', 'Value']:
        return other // self, other % self

    def __pow__(self, other: Operand) -> 'Value':
        return binary('power', self, other)

    def __rpow__(self, other: Operand) -> 'Value':
        return binary('power', other, self)

    def __and__(self, other: Operand) -> 'Value':
        return binary('and_', self, other)

    def __rand__(self, other: Operand) -> 'Value':
        return binary('and_', other, self)

    def __or__(self, other: Operand) -> 'Value':
        return binary('or_', self, other)

    def __ror__(self, other: Operand) -> 'Value':
        return binary('or_', other, self)

    def __xor__(self, other: Operand) -> 'Value':
        return binary('xor', self, other)

    def __rxor__(self, other: Operand) -> 'Value':
        return binary('xor', other, self)

    def __lshift__(self, other: Operand) -> 'Value':
        return binary('shift_left', self, other)

    def __rlshift__(self, other: Operand) -> 'Value':
        return binary('shift_left', other, self)

    def __rshift__(self, other: Operand) -> 'Value':
        return binary('shift_right', self, other)

    def __rrshift__(self, other: Operand) -> 'Value':
        return binary('shift_right', other, self)

    def __eq__(self, other: Operand) -> 'Value':  # type: ignore[override]
        return binary('EQ', self, other)

    def __ne__(self, other: Operand) -> 'Value':  # type: ignore[override]
        return binary('NE', self, other)

    def __lt__(self, other: Operand) -> 'Value':
        return binary('LT', self, other)

    def __le__(self, other: Operand) -> 'Value':
        return binary('LE', self, other)

    def __gt__(self, other: Operand) -> 'Value':
        return binary('GT', self, other)

    def __ge__(self, other: Operand) -> 'Value':
        return binary('GE', self, other)

    def __matmul__(self, other: Operand) -> 'Value':
        return matmul(self, other)

    def __rmatmul__(self, other: Operand) -> 'Value':
        return matmul(other, self)

    def __neg__(self) -> 'Value':
        return self._alike(self.graph.negate(self))

    def __pos__(self) -> 'Value':
        return self

    def __abs__(self) -> 'Value':
        return self._alike(self.graph.abs(self))

    def __invert__(self) -> 'Value':
        return self.graph.not_(self)

    def __round__(self, digits: None = None) -> 'Value':
        return self._alike(self.graph.round_nearest_even(self))

    def __floor__(self) -> 'Value':
        return self._alike(self.graph.floor(self))

    def __ceil__(self) -> 'Value':
        return self._alike(self.graph.ceil(self))

    def _alike(self, result: 'Value') -> 'Value':
        """A result of this value alone: of a number it is a number."""
        return as_number(result) if self._is_number else result

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        return _ufuncs.call(ufunc.__name__, method, inputs, named)

    # --- Elements and dimensions

    def __getitem__(self, key: Any) -> 'Value':
        return index(self, key)

    def astype(self, dtype: DTypeLike) -> 'Value':
        """The value in another element type, as `Graph.convert` makes it."""
        if self.dtype == dtype and not self._is_number:
            return self
        return self.graph.convert(self, dtype)

    def reshape(self, *dims: Any, order: str = 'C') -> 'Value':
        """The elements, in order, with other sizes; one of them may be -1."""
        if order != 'C':
            raise TypeError('elements are in row-major order: reshape takes no order {!r}'.format(
                order))
        sizes = integers(dims)
        if -1 in sizes:
            at = sizes.index(-1)
            size = quotient(self.shape, sizes[:at] + sizes[at + 1:])
            if size is None:
                raise ValueError('cannot reshape {} into {}'.format(self.shape, tuple(sizes)))
            sizes[at] = size
        if self.shape.dims == tuple(sizes):
            return self
        return self.graph.reshape(self, sizes)

    def broadcast_to(self, dims: Any) -> 'Value':
        """The value with additional leading dimensions, and dimensions of size 1 repeated."""
        return broadcast_to(self, tuple(integers([dims])))

    def ravel(self, order: str = 'C') -> 'Value':
        """The elements in one dimension."""
        return self.reshape(-1, order=order)

    def squeeze(self, axis: Axis = None) -> 'Value':
        """The value without its dimensions of size 1, or without those of `axis`."""
        axes = (axes_of(axis, self.ndim) if axis is not None
                else [i for i, n in enumerate(self.shape) if n == 1])
        if any(self.shape[i] != 1 for i in axes):
            raise ValueError('cannot squeeze dimensions of {} that are not 1'.format(self.shape))
        return self.reshape([n for i, n in enumerate(self.shape) if i not in axes])

    def transpose(self, *axes: Any) -> 'Value':
        """The value with its dimensions in another order, by default reversed."""
        order = axes_of(integers(axes) if axes not in ((), (None,)) else
                      range(self.ndim)[::-1], self.ndim)
        if len(order) != self.ndim:
            raise ValueError('transpose of {} by {} axes'.format(self.shape, len(order)))
        return self if order == sorted(order) else self.graph.transpose(self, order)

    def swapaxes(self, axis1: int, axis2: int) -> 'Value':
        """The value with two dimensions exchanged."""
        first, = axes_of(axis1, self.ndim)
        second, = axes_of(axis2, self.ndim)
        order = list(range(self.ndim))
        order[first], order[second] = second, first
        return self.transpose(order)

    @property
    def T(self) -> 'Value':  # pylint: disable=invalid-name
        """The value with its dimensions reversed."""
        return self.transpose()

    @property
    def mT(self) -> 'Value':  # pylint: disable=invalid-name
        """The value with its last two dimensions exchanged."""
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> 'Value':
        """The real part."""
        return self.graph.real(self) if self.dtype.kind == 'complex' else self

    @property
    def imag(self) -> 'Value':
        """The imaginary part."""
        return self.graph.imag(self)

    def conj(self) -> 'Value':
        """The complex conjugate."""
        if self.dtype.kind != 'complex':
            return self
        return self.graph.complex(self.real, -self.imag)

    conjugate = conj

    # --- Reductions

    def sum(self, axis: Axis = None, dtype: Optional[DTypeLike] = None, out: None = None,
            keepdims: bool = False) -> 'Value':
        """The sum over some dimensions, or all. It has the value's element type unless `dtype` is
        given; a pred is summed in s32. Floats of less than 32 bits are summed in f32.
        """
        return reduce('SUM', self, axis, dtype, out, keepdims)

    def prod(self, axis: Axis = None, dtype: Optional[DTypeLike] = None, out: None = None,
             keepdims: bool = False) -> 'Value':
        """The product over some dimensions, or all, in types as `sum`."""
        return reduce('PRODUCT', self, axis, dtype, out, keepdims)

    def mean(self, axis: Axis = None, dtype: Optional[DTypeLike] = None, out: None = None,
             keepdims: bool = False) -> 'Value':
        """The mean over some dimensions, or all; of integers and preds in f64."""
        inexact = self.dtype.kind in ('float', 'complex')
        kept = DType(dtype if dtype is not None else self.dtype if inexact else 'f64')
        work = DType('f32') if kept.bits < 32 else kept
        total = reduce('SUM', self, axis, work, out, keepdims)
        mean: Value = total / count(self, axis, work)
        return mean.astype(kept)

    def max(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> 'Value':
        """The largest over some dimensions, or all; NaN where one is."""
        return reduce('MAX', self, axis, None, out, keepdims)

    def min(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> 'Value':
        """The smallest over some dimensions, or all; NaN where one is."""
        return reduce('MIN', self, axis, None, out, keepdims)

    def any(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> 'Value':
        """Whether some element is not zero."""
        return reduce('OR', self.astype('pred'), axis, None, out, keepdims)

    def all(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> 'Value':
        """Whether all elements are not zero."""
        return reduce('AND', self.astype('pred'), axis, None, out, keepdims)

    def clip(self, min: Optional[Operand] = None,  # pylint: disable=redefined-builtin
             max: Optional[Operand] = None, out: None = None) -> 'Value':
        """Not less than `min`, and not more than `max`."""
        refuse_out(out)
        value = self if min is None else binary('maximum', self, min)
        return value if max is None else binary('minimum', value, max)

    def dot(self, other: Operand) -> 'Value':
        """`@`, for values of at most two dimensions; with a scalar the product."""
        ndim = getattr(other, 'ndim', 0)
        if self.ndim == 0 or ndim == 0:
            return self * other
        if self.ndim > 2 or ndim > 2:
            raise TypeError('dot of more than two dimensions: use @, or graph.dot')
        return self @ other


def tuple_size(value: Value) -> int:
    """The number of elements of a tuple."""
    struct = ShapeStruct()
    lib.kiln_graph_value_shape(value.graph, value.id, ctypes.byref(struct))
    return int(struct.rank)
