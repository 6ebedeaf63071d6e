"""Functions for neural networks and arrays, as in NumPy and JAX, each built from ops.

Functions take values and add to their graph. Axes may be negative, sizes may be symbols; floats
narrower than 32 bits are computed in f32 and rounded once. Functions of NumPy's and JAX's names
have their semantics. `Graph` has the same functions as methods, except those with the name of an
op, whose methods broadcast nothing.
"""

import ctypes
from typing import Any, Callable, Iterable, Optional, Sequence, Union

from . import _structs
from ._dtypes import DTypeLike, dtype_number
from ._library import ints, lib, options
from ._table import DIRECTIONS
from .value import Value

Axis = Union[int, Iterable[int]]

_TAKE_MODES = {'fill': 1, 'clip': 2, 'wrap': 3}


def _axes(axis: Optional[Axis]) -> Sequence[Any]:
    if axis is None:
        return ints(())
    return ints([axis] if isinstance(axis, int) else axis)


def _id(value: Optional[Value]) -> int:
    return 0 if value is None else value.id


# --- NumPy's broadcasting

def broadcast_to(x: Value, dims: Sequence[int]) -> Value:
    """`x` with additional leading dimensions, and dimensions of size 1 repeated."""
    return x.graph.value(lib.kiln_nn_broadcast_to(x.graph, x.id, *ints(dims)))


def _binary(word: str) -> Callable[[Value, Value], Value]:
    function = getattr(lib, 'kiln_nn_' + word)

    def made(x: Value, y: Value) -> Value: return x.graph.value(function(x.graph, x.id, y.id))
    made.__name__ = made.__qualname__ = word
    made.__doc__ = 'The op of the same name on broadcast operands.'
    return made


add = _binary('add')
subtract = _binary('subtract')
multiply = _binary('multiply')
divide = _binary('divide')
remainder = _binary('remainder')
power = _binary('power')
maximum = _binary('maximum')
minimum = _binary('minimum')
atan2 = _binary('atan2')
and_ = _binary('and')
or_ = _binary('or')
xor = _binary('xor')
shift_left = _binary('shift_left')
shift_right_arithmetic = _binary('shift_right_arithmetic')
shift_right_logical = _binary('shift_right_logical')


def compare(x: Value, y: Value, direction: str) -> Value:
    """The op of the same name on broadcast operands."""
    if direction not in DIRECTIONS:
        raise ValueError('{!r} is none of {}'.format(direction, ', '.join(DIRECTIONS)))
    return x.graph.value(lib.kiln_nn_compare(x.graph, x.id, y.id, DIRECTIONS[direction]))


def where(condition: Value, x: Value, y: Value) -> Value:
    """`x` where the condition, a pred, is true, and `y` elsewhere."""
    return x.graph.value(lib.kiln_nn_where(x.graph, condition.id, x.id, y.id))


def clip(x: Value, low: Optional[Value] = None, high: Optional[Value] = None) -> Value:
    """Not less than `low`, and not more than `high`."""
    return x.graph.value(lib.kiln_nn_clip(x.graph, x.id, _id(low), _id(high)))


# --- Activations

def softmax(x: Value, axis: Axis = -1) -> Value:
    """exp(x - max(x)) / sum(exp(x - max(x)))."""
    return x.graph.value(lib.kiln_nn_softmax(x.graph, x.id, *_axes(axis)))


def log_softmax(x: Value, axis: Axis = -1) -> Value:
    """The logarithm of softmax, without its underflow."""
    return x.graph.value(lib.kiln_nn_log_softmax(x.graph, x.id, *_axes(axis)))


def gelu(x: Value, approximate: bool = True) -> Value:
    """The Gaussian error linear unit, by tanh if approximate, otherwise by erf."""
    return x.graph.value(lib.kiln_nn_gelu(x.graph, x.id, int(approximate)))


def silu(x: Value) -> Value:
    """x * logistic(x)."""
    return x.graph.value(lib.kiln_nn_silu(x.graph, x.id))


# --- Normalisations

def layer_norm(x: Value, scale: Optional[Value] = None, offset: Optional[Value] = None,
               axis: Axis = -1, epsilon: float = 1e-5) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset."""
    return x.graph.value(lib.kiln_nn_layer_norm(x.graph, x.id, _id(scale), _id(offset),
                                                *_axes(axis), epsilon))


def rms_norm(x: Value, scale: Optional[Value] = None, axis: Axis = -1,
             epsilon: float = 1e-6) -> Value:
    """x / sqrt(mean(x * x) + epsilon) * scale."""
    return x.graph.value(lib.kiln_nn_rms_norm(x.graph, x.id, _id(scale), *_axes(axis), epsilon))


# --- Statistics, argmax and argmin

def mean(x: Value, axis: Optional[Axis] = None, keepdims: bool = False) -> Value:
    """The mean over some dimensions, or all; of integers and preds in f64."""
    return x.graph.value(lib.kiln_nn_mean(x.graph, x.id, *_axes(axis), int(keepdims)))


def variance(x: Value, axis: Optional[Axis] = None, ddof: float = 0,
             keepdims: bool = False) -> Value:
    """The mean square distance from the mean, with N - ddof for the number of elements."""
    return x.graph.value(lib.kiln_nn_variance(x.graph, x.id, *_axes(axis), ddof, int(keepdims)))


def argmax(x: Value, axis: Optional[Axis] = None, keepdims: bool = False,
           dtype: Optional[DTypeLike] = None) -> Value:
    """The position of the largest element: the first NaN, or else the first of equal ones. Along
    several dimensions, or all, it is the position in row-major order. The type is s64 by default.
    """
    return _position(lib.kiln_nn_argmax, x, axis, keepdims, dtype)


def argmin(x: Value, axis: Optional[Axis] = None, keepdims: bool = False,
           dtype: Optional[DTypeLike] = None) -> Value:
    """The position of the smallest element, as `argmax`."""
    return _position(lib.kiln_nn_argmin, x, axis, keepdims, dtype)


def _position(function: Callable[..., int], x: Value, axis: Optional[Axis], keepdims: bool,
              dtype: Optional[DTypeLike]) -> Value:
    number = 0 if dtype is None else dtype_number(dtype)
    return x.graph.value(function(x.graph, x.id, *_axes(axis), int(keepdims), number))


# --- Embedding lookups

def take(x: Value, indices: Value, axis: int, mode: str = 'fill') -> Value:
    """The slices of `x` along an axis at the indices.

    Args:
        mode: the treatment of out-of-bounds indices: 'fill' gives NaN or the like, and -1 is the
            last; 'clip' takes the nearest; 'wrap' takes them modulo the size
    """
    if mode not in _TAKE_MODES:
        raise ValueError('{!r} is none of {}'.format(mode, ', '.join(_TAKE_MODES)))
    return x.graph.value(lib.kiln_nn_take(x.graph, x.id, indices.id, axis, _TAKE_MODES[mode]))


def one_hot(indices: Value, num_classes: int, dtype: DTypeLike = 'f32', axis: int = -1) -> Value:
    """1 where a new dimension's position equals the index, and 0 elsewhere."""
    return indices.graph.value(lib.kiln_nn_one_hot(indices.graph, indices.id, num_classes, axis,
                                                   dtype_number(dtype)))


def attention(query: Value, key: Value, value: Value, bias: Optional[Value] = None,
              mask: Optional[Value] = None, scale: Optional[float] = None,
              is_causal: bool = False) -> Value:
    """Scaled dot product attention, as `jax.nn.dot_product_attention`.

    Args:
        query: [B,T,N,H], or [T,N,H]
        key: [B,S,K,H], or [S,K,H], where K divides N
        value: as `key`
        bias: added to the scaled logits; broadcast to [B,N,T,S]
        mask: a pred, true where a query attends to a key; broadcast to [B,N,T,S]
        scale: factor of the logits; None: 1 / sqrt(H)
        is_causal: query t attends to keys 0 to t only
    """
    made = options(_structs.AttentionOptions, lib.kiln_attention_options_init,
                   scale=scale or 0.0, causal=int(is_causal), mask=_id(mask), bias=_id(bias))
    if scale == 0:
        raise ValueError('a scale of 0 makes all products equal')
    return query.graph.value(lib.kiln_nn_attention(query.graph, query.id, key.id, value.id,
                                                   ctypes.byref(made)))
