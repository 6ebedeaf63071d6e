"""Combinations of values with each other, with numbers and with arrays: NumPy's rules, as ops."""

import math
import operator
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Union, cast

from . import value as _value
from ._dtypes import DType, DTypeLike, checked_number, number_dtype, rank_of
from ._table import DIRECTIONS
from .symbol import Symbol

if TYPE_CHECKING:
    from .value import Value

Axis = Union[None, int, Sequence[int]]


# --- Arguments as NumPy's functions take them

def integers(items: Sequence[Any]) -> List[int]:
    """Integers and symbols given one by one, or as one sequence."""
    if len(items) == 1 and not hasattr(items[0], '__index__'):
        items = items[0]
    return [item if isinstance(item, Symbol) else operator.index(item) for item in items]


def axes_of(axis: Any, ndim: int) -> List[int]:
    """The numbers of dimensions; negative ones count from the end."""
    given = [axis] if hasattr(axis, '__index__') else list(axis)
    axes = [operator.index(a) for a in given]
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError('axis {} of a value of {} dimensions'.format(a, ndim))
    axes = [a % ndim for a in axes]
    if len(set(axes)) != len(axes):
        raise ValueError('an axis is there twice: {}'.format(axis))
    return axes


def refuse_out(out: Any) -> None:
    """The argument `out` of NumPy's methods makes no sense in a graph."""
    if out is not None:
        raise TypeError('an op has no `out`: its result is a new value')


def quotient(dims: Sequence[int], others: Sequence[int]) -> Optional[int]:
    """The size by which the others give as many elements as `dims`; None if there is none."""
    symbols: List[int] = [size for size in dims if isinstance(size, Symbol)]
    number = math.prod(size for size in dims if not isinstance(size, Symbol))
    divisor = 1
    for size in others:
        if not isinstance(size, Symbol):
            divisor *= size
        elif size in symbols:
            symbols.remove(size)
        else:
            return None
    if divisor <= 0 or number % divisor:
        return None
    size = number // divisor
    for symbol in symbols:
        size = symbol if size == 1 else size * symbol
    return size


# --- Operands: of one graph, of one element type, and of dimensions that go together

def is_number(item: Any) -> bool:
    """Whether it is a Python number, or a NumPy scalar, which NumPy's functions convert to arrays
    without dimensions.
    """
    if isinstance(item, (bool, int, float, complex)):
        return True
    numpy = sys.modules.get('numpy')
    return numpy is not None and (isinstance(item, numpy.generic) or
                                  isinstance(item, numpy.ndarray) and item.shape == ())


def as_number(value: 'Value') -> 'Value':
    """Marks a scalar as a number: with another value it takes that one's element type."""
    value._is_number = True
    return value


def _lift(item: Any, like: Any, dtype: DType) -> Any:
    """An operand as a value of `like`'s graph, and a number as one of an element type;
    NotImplemented for other objects."""
    if isinstance(item, _value.Value):
        if item.graph is not like.graph:
            raise ValueError('{!r} is of another graph than {!r}'.format(item, like))
        return _converted(item, dtype) if item._is_number else item
    if is_number(item):
        return like.graph.scalar(dtype, checked_number(item, dtype))
    if isinstance(item, (list, tuple)):
        raise TypeError('a {} is no operand: make it an array first'.format(type(item).__name__))
    if hasattr(item, '__array__') or hasattr(item, '__array_interface__'):
        return like.graph.constant(item)
    return NotImplemented


def lifted(op: str, *items: Any) -> Any:
    """The operands of an elementwise op as values of one graph and one element type, or
    NotImplemented. At least one of them is a value.
    """
    like, dtype = _leading(items)
    if like.shape.dtype == 'tuple':
        raise TypeError('{} of a tuple: take its elements first'.format(op))
    values = [_lift(item, like, dtype) for item in items]
    if any(item is NotImplemented for item in values):
        return NotImplemented
    names = {item.shape.dtype for item in values}
    if len(names) > 1:
        raise TypeError('{} of {}: element types are not converted unasked; convert one, as in '
                        'x.astype({!r})'.format(op, ' and '.join(repr(v.shape) for v in values),
                                                values[0].shape.dtype))
    return values


def _converted(number: 'Value', dtype: DType) -> 'Value':
    """A number in an element type, which can hold numbers of its kind."""
    if number.dtype is dtype:
        return number
    if rank_of(number.dtype) > rank_of(dtype):
        raise TypeError('a number of {} is no number of {}: convert the other value first, as in '
                        'x.astype({!r})'.format(number.dtype, dtype, number.dtype.name))
    return number.graph.convert(number, dtype)


def _leading(items: Sequence[Any]) -> 'Tuple[Value, DType]':
    """A value among operands, and the element type that their numbers take: that of the first value
    or array, or the widest one of the numbers.
    """
    values = [item for item in items if isinstance(item, _value.Value)]
    for value in values:
        if not value._is_number:
            return value, value.dtype
    for item in items:
        if not isinstance(item, _value.Value) and not is_number(item) and hasattr(item, 'dtype'):
            return values[0], DType(item.dtype)
    widest = max(values, key=lambda value: (rank_of(value.dtype), value.dtype.bits))
    rank = max([rank_of(number_dtype(item)) for item in items if is_number(item)], default=0)
    if rank <= rank_of(widest.dtype):
        return widest, widest.dtype
    return widest, DType(('pred', 's64', 'f64', 'c128')[rank])


def common_dims(op: str, *shapes: Sequence[int]) -> Tuple[int, ...]:
    """The dimensions of several shapes broadcast together."""
    dims: List[int] = []
    for at in range(1, max(map(len, shapes)) + 1):
        size = 1
        for other in [shape[-at] for shape in shapes if at <= len(shape)]:
            if size == 1:
                size = other
            elif other not in (1, size):
                raise ValueError('{} of {}: the dimensions do not go together'.format(
                    op, ' and '.join(map(repr, shapes))))
        dims.insert(0, size)
    return tuple(dims)


def broadcast_to(value: 'Value', dims: Tuple[int, ...]) -> 'Value':
    """A value with additional leading dimensions, and dimensions of size 1 repeated."""
    old = value.shape.dims
    if old == dims:
        return value
    skip = len(dims) - len(old)
    if skip < 0 or any(n not in (1, dims[skip + i]) for i, n in enumerate(old)):
        raise ValueError('{!r} cannot be broadcast to {}'.format(value.shape, dims))
    kept = [i for i, n in enumerate(old) if n == dims[skip + i]]
    if len(kept) < len(old):
        value = value.graph.reshape(value, [old[i] for i in kept])
    return value.graph.broadcast(value, [skip + i for i in kept], dims)


# --- Ops of two operands

def _floor_divide(graph: Any, a: Any, b: Any) -> Any:
    """NumPy's `//`: the quotient rounded down; of integers 0 where b is.

    Of floats (a - a mod b) / b, as near to an integer as that gets, is rounded; where b is 0, or
    the quotient is, it is the quotient.
    """
    if a.dtype.kind in ('signed', 'unsigned'):
        quotient = graph.divide(a, b)
        if a.dtype.kind == 'signed':
            rest = graph.remainder(a, b)
            quotient = graph.select((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
        return graph.select(b == 0, _zeros(b, 0), quotient)
    quotient = graph.divide(a, b)
    rest = graph.remainder(a, b)
    exact = graph.divide(a - rest, b)
    exact = graph.select((rest != 0) & ((b < 0) != (rest < 0)), exact - 1, exact)
    down = graph.floor(exact)
    down = graph.select(exact - down > 0.5, down + 1, down)
    result = graph.select(exact == 0, _zero_with_sign_of(quotient), down)
    return graph.select(b == 0, quotient, result)


def _modulo(graph: Any, a: Any, b: Any) -> Any:
    """NumPy's `%`: what `//` leaves, with the sign of b; of integers 0 where b is."""
    rest = graph.remainder(a, b)
    if a.dtype.kind == 'signed':
        rest = graph.select((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    if a.dtype.kind in ('signed', 'unsigned'):
        return graph.select(b == 0, _zeros(b, 0), rest)
    result = graph.select((rest < 0) != (b < 0), rest + b, rest)
    result = graph.select(rest == 0, _zero_with_sign_of(b), result)
    return graph.select(b == 0, rest, result)


def _in_f32(make: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Of floats of less than 32 bits the result of f32, rounded once."""
    def made(graph: Any, a: Any, b: Any) -> Any:
        if a.dtype.kind != 'float' or a.dtype.bits >= 32:
            return make(graph, a, b)
        return make(graph, a.astype('f32'), b.astype('f32')).astype(a.dtype)
    return made


def _zeros(like: Any, zero: float) -> Any:
    scalar = like.graph.scalar(like.dtype, zero)
    return like.graph.broadcast_like(scalar, like) if like.shape else scalar


def _zero_with_sign_of(x: Any) -> Any:
    """A zero with the sign of x, of a zero too: 1 / -0 is below 0."""
    negative = (x < 0) | ((x == 0) & (1 / x < 0))
    return x.graph.select(negative, _zeros(x, -0.0), _zeros(x, 0.0))


def _divide(graph: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in ('signed', 'unsigned', 'pred'):
        raise TypeError('the quotient of {0} is no {0}: use // for what is rounded down, '
                        'graph.divide for what is cut off, or convert to a float first'.format(
                            a.dtype))
    return graph.divide(a, b)


def _shift_right(graph: Any, a: Any, b: Any) -> Any:
    op = graph.shift_right_arithmetic if a.dtype.kind == 'signed' else graph.shift_right_logical
    return op(a, b)


_BINARY: Dict[str, Callable[[Any, Any, Any], Any]] = {
    'divide': _divide, 'floor_divide': _in_f32(_floor_divide), 'modulo': _in_f32(_modulo),
    'shift_right': _shift_right}


def _compare(direction: str) -> Callable[[Any, Any, Any], Any]:
    return lambda graph, a, b: graph.compare(a, b, direction)


_BINARY.update((direction, _compare(direction)) for direction in DIRECTIONS)


def binary(op: str, left: Any, right: Any) -> 'Value':
    """An op of two operands, one of which is a value at least: the name of an elementwise op, of a
    direction of comparison, or of an operator of NumPy's that HLO lacks.
    """
    if op == 'power' and _is_negative_integer(right) and left.dtype.kind in ('signed', 'unsigned'):
        raise ValueError('an integer to the power of a negative one is none: convert it first')
    a, b = left, right
    are_numbers = _is_number_here(left) and _is_number_here(right)
    if are_numbers and op == 'divide':
        a, b = _inexact(a), _inexact(b)
    if not _are_alike(a, b):
        pair = lifted(op, a, b)
        if pair is NotImplemented:
            return cast('Value', NotImplemented)
        a, b = pair
        if a.shape.dims != b.shape.dims:
            dims = common_dims(op, a.shape, b.shape)
            a, b = broadcast_to(a, dims), broadcast_to(b, dims)
    make = _BINARY.get(op)
    if make is not None:
        result: 'Value' = make(a.graph, a, b)
    else:
        result = getattr(a.graph, op)(a, b)
        result._shape = a._shape  # of an elementwise op: spares the question
    return as_number(result) if are_numbers else result


def _is_number_here(item: Any) -> bool:
    return item._is_number if isinstance(item, _value.Value) else is_number(item)


def _inexact(number: Any) -> Any:
    """A number of a quotient, which of integers is a float."""
    if isinstance(number, _value.Value) and number.dtype.kind not in ('float', 'complex'):
        return as_number(number.graph.convert(number, 'f64'))
    return number


def _are_alike(left: Any, right: Any) -> bool:
    """Whether two operands are values of one graph, and arrays of one shape: as most are."""
    if not (isinstance(left, _value.Value) and isinstance(right, _value.Value)
            and left.graph is right.graph):
        return False
    one, other = left.shape, right.shape
    return one.dtype == other.dtype and tuple.__eq__(one, other) and one.dtype != 'tuple'


def _is_negative_integer(item: Any) -> bool:
    return isinstance(item, int) and item < 0


def matmul(left: Any, right: Any) -> 'Value':
    """NumPy's `@`: vectors, matrices, and stacks of matrices, which are broadcast."""
    if is_number(left) or is_number(right):
        raise TypeError('a matrix product takes no scalars: use *')
    pair = lifted('matmul', left, right)
    if pair is NotImplemented:
        return cast('Value', NotImplemented)
    a, b = pair
    if not a.shape or not b.shape:
        raise TypeError('matmul of {!r} and {!r}: it takes no scalars'.format(a.shape, b.shape))
    along = max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[along]:
        raise ValueError('matmul of {!r} and {!r}: the last size of the one is not the {} of the '
                         'other'.format(a.shape, b.shape,
                                        'second to last' if b.ndim > 1 else 'size'))
    dot: Callable[..., 'Value'] = a.graph.dot
    if b.ndim <= 2 or a.ndim == 1:  # only one of them is a stack
        return dot(a, b, lhs_contracting_dims=[a.ndim - 1], rhs_contracting_dims=[along])
    if a.ndim == 2:
        product = dot(a, b, lhs_contracting_dims=[1], rhs_contracting_dims=[along])
        return product.transpose(*range(1, b.ndim - 1), 0, b.ndim - 1)
    stack = common_dims('matmul', a.shape[:-2], b.shape[:-2])
    a, b = broadcast_to(a, stack + a.shape[-2:]), broadcast_to(b, stack + b.shape[-2:])
    batch = list(range(len(stack)))
    return dot(a, b, lhs_batch_dims=batch, rhs_batch_dims=batch,
               lhs_contracting_dims=[len(stack) + 1], rhs_contracting_dims=[len(stack)])


# --- Reductions

def _reduced(value: Any, axis: Axis) -> List[int]:
    return list(range(value.ndim)) if axis is None else sorted(axes_of(axis, value.ndim))


def count(value: Any, axis: Axis, dtype: DType) -> Any:
    """How many elements a reduction takes: a number, or a value where a size is a symbol."""
    axes = _reduced(value, axis)
    number: Any = math.prod(value.shape[i] for i in axes
                            if not isinstance(value.shape[i], Symbol))
    for i in axes:
        if isinstance(value.shape[i], Symbol):
            number = value.graph.get_dimension_size(value, [i]).astype(dtype) * number
    return number


def reduce(reducer: str, value: 'Value', axis: Axis, dtype: Optional[DTypeLike], out: Any,
           keepdims: bool) -> 'Value':
    """NumPy's reductions: of the value in `dtype`, over some dimensions or all."""
    refuse_out(out)
    axes = _reduced(value, axis)
    if reducer in ('MAX', 'MIN') and any(value.shape[i] == 0 for i in axes):
        raise ValueError('{!r} has no elements to take the {} of'.format(
            value.shape, reducer.lower()))
    kept = value.dtype if dtype is None else DType(dtype)
    if reducer in ('SUM', 'PRODUCT'):
        if dtype is None and kept.kind == 'pred':
            kept = DType('s32')
        # What is rounded to few bits at each step would lose most of a long sum.
        value = value.astype('f32' if kept.kind == 'float' and kept.bits < 32 else kept)
    result = value.graph.reduce_by(value, axes, reducer).astype(kept)
    if not keepdims:
        return result
    return result.reshape([1 if i in axes else n for i, n in enumerate(value.shape)])


# --- Indices

def index(value: 'Value', key: Any) -> 'Value':
    """NumPy's basic indexing: integers, slices, None and `...`; of a tuple its elements."""
    if value.shape.dtype == 'tuple':
        size = _value.tuple_size(value)
        at = operator.index(key)
        if not -size <= at < size:
            raise IndexError('element {} of a tuple of {}'.format(at, size))
        return value.graph.get_tuple_element(value, at % size)
    keys = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, item in enumerate(keys) if item is Ellipsis]
    missing = value.ndim - sum(item is not None and item is not Ellipsis for item in keys)
    if missing < 0 or len(dots) > 1:
        raise IndexError('too many indices for {!r}'.format(value.shape))
    at = dots[0] if dots else len(keys)
    keys[at:at + 1] = [slice(None)] * missing
    lists: Tuple[List[int], List[int], List[int]] = ([], [], [])
    kept: List[Optional[int]] = []  # dimensions, and None for those that are new
    reversed_dims: List[int] = []
    for item in keys:
        if item is None:
            kept.append(None)
            continue
        axis = len(lists[0])
        start, limit, stride = _range(value, axis, item, reversed_dims)
        for each, number in zip(lists, (start, limit, stride)):
            each.append(number)
        if isinstance(item, slice):
            kept.append(axis)
    if any((start, limit, stride) != (0, n, 1) for start, limit, stride, n
           in zip(*lists, value.shape)):
        value = value.graph.slice(value, *lists)
    if reversed_dims:
        value = value.graph.reverse(value, reversed_dims)
    return value.reshape([1 if axis is None else value.shape[axis] for axis in kept])


def _range(value: Any, axis: int, item: Any, reversed_dims: List[int]) -> Tuple[int, int, int]:
    """Start, limit and stride of what an index takes of a dimension; a slice that goes backwards
    is one of those that are reversed afterwards.
    """
    size = value.shape[axis]
    if isinstance(size, Symbol):
        return _range_of_symbol(value, axis, size, item)
    if isinstance(item, slice):
        start, stop, stride = item.indices(size)
        length = len(range(start, stop, stride))
        if length == 0:
            return 0, 0, 1
        last = start + (length - 1) * stride
        if stride < 0:
            reversed_dims.append(axis)
            return last, start + 1, -stride
        return start, last + 1, stride
    if isinstance(item, bool) or not hasattr(item, '__index__') or getattr(item, 'shape', None):
        raise TypeError('an index is an integer, a slice, None or ..., not {!r}; see '
                        'graph.dynamic_slice, graph.gather and graph.select'.format(item))
    at = operator.index(item)
    if not -size <= at < size:
        raise IndexError('index {} is out of range for dimension {} of {!r}'.format(
            at, axis, value.shape))
    return at % size, at % size + 1, 1


def _range_of_symbol(value: Any, axis: int, size: Symbol, item: Any) -> Tuple[int, int, int]:
    """The same of a dimension of symbols, which must be as large as the index says once they have
    numbers: what is beyond the end is not cut off.
    """
    def place(at: Any) -> int:
        if isinstance(at, Symbol):
            return at
        number = operator.index(at)
        return number if number >= 0 else size + number

    if isinstance(item, slice):
        stride = 1 if item.step is None else operator.index(item.step)
        if stride < 1:
            raise IndexError('dimension {} of {!r} is a symbol: turn it round by graph.reverse'.format(
                axis, value.shape))
        return (0 if item.start is None else place(item.start),
                size if item.stop is None else place(item.stop), stride)
    if isinstance(item, bool) or not hasattr(item, '__index__') or getattr(item, 'shape', None):
        raise TypeError('an index is an integer, a slice, None or ..., not {!r}; see '
                        'graph.dynamic_slice, graph.gather and graph.select'.format(item))
    at = place(item)
    return at, at + 1, 1
