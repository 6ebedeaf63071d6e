"""NumPy's universal functions on values of graphs."""

from typing import Any, Callable, Dict, Sequence

from ._operators import as_number, binary, lifted, matmul

# NumPy's name, and the name of the op, as `binary` takes it.
_BINARY = {'add': 'add', 'subtract': 'subtract', 'multiply': 'multiply', 'divide': 'divide',
           'true_divide': 'divide', 'floor_divide': 'floor_divide', 'remainder': 'modulo',
           'fmod': 'remainder', 'power': 'power', 'maximum': 'maximum', 'minimum': 'minimum',
           'arctan2': 'atan2', 'nextafter': 'next_after', 'bitwise_and': 'and_',
           'bitwise_or': 'or_', 'bitwise_xor': 'xor', 'left_shift': 'shift_left',
           'right_shift': 'shift_right', 'equal': 'EQ', 'not_equal': 'NE', 'less': 'LT',
           'less_equal': 'LE', 'greater': 'GT', 'greater_equal': 'GE'}
_LOGICAL = {'logical_and': 'and_', 'logical_or': 'or_', 'logical_xor': 'xor'}
# Functions of any numbers.
_UNARY = {'negative': 'negate', 'absolute': 'abs', 'sign': 'sign', 'invert': 'not_'}
# Functions of floats and complex numbers; an integer would be another number.
_INEXACT = {'exp': 'exponential', 'expm1': 'exponential_minus_one', 'log': 'log',
            'log1p': 'log_plus_one', 'sqrt': 'sqrt', 'cbrt': 'cbrt', 'sin': 'sine',
            'cos': 'cosine', 'tan': 'tan', 'arcsin': 'asin', 'arccos': 'acos', 'sinh': 'sinh',
            'cosh': 'cosh', 'tanh': 'tanh', 'arcsinh': 'asinh', 'arccosh': 'acosh',
            'arctanh': 'atanh', 'isfinite': 'is_finite'}
# Functions to integers, which integers are.
_ROUNDING = {'floor': 'floor', 'ceil': 'ceil', 'rint': 'round_nearest_even'}


def _trunc(x: Any) -> Any:
    return x.graph.select(x < 0, x.graph.ceil(x), x.graph.floor(x))


# What is made of several ops.
_OTHERS: Dict[str, Callable[..., Any]] = {
    'matmul': matmul,
    'divmod': lambda a, b: (binary('floor_divide', a, b), binary('modulo', a, b)),
    'positive': lambda x: x,
    'square': lambda x: x * x,
    'reciprocal': lambda x: 1 / x,
    'conjugate': lambda x: x.conj(),
    'arctan': lambda x: binary('atan2', x, 1.0),
    'fabs': lambda x: x.graph.abs(x),
    'isnan': lambda x: x != x,
    'isinf': lambda x: ~(x.graph.is_finite(x) | (x != x)),
    'trunc': _trunc,
    'logical_not': lambda x: ~x.astype('pred'),
}
_OF_INEXACT = ('reciprocal', 'arctan', 'fabs', 'isnan', 'isinf')


def call(name: str, method: str, inputs: Sequence[Any], named: Dict[str, Any]) -> Any:
    """What `__array_ufunc__` of a value does."""
    if method != '__call__':
        raise TypeError('numpy.{}.{} is no op: values have methods, and a graph has its ops'.format(
            name, method))
    if named.get('out') is not None:
        raise TypeError('numpy.{}: an array cannot be the result of an op of a graph'.format(name))
    if named:
        raise TypeError('numpy.{}: an op has no {}'.format(name, ', '.join(sorted(named))))
    if name in _BINARY:
        return binary(_BINARY[name], *inputs)
    if name in _LOGICAL:
        pair = lifted(name, *inputs)
        return pair if pair is NotImplemented else binary(
            _LOGICAL[name], *(x.astype('pred') for x in pair))
    if len(inputs) == 1 and inputs[0]._is_number:
        return _of_number(name, inputs[0])
    return _of_value(name, inputs)


def _of_number(name: str, number: Any) -> Any:
    """The function of a number, which is a number."""
    if number.dtype.kind not in ('float', 'complex') and (name in _INEXACT or name in _OF_INEXACT):
        number = number.graph.convert(number, 'f64')
    result = _of_value(name, [number])
    return as_number(result)


def _of_value(name: str, inputs: Sequence[Any]) -> Any:
    x = inputs[0]
    if name in _UNARY:
        return getattr(x.graph, _UNARY[name])(x)
    if (name in _ROUNDING or name == 'trunc') and x.dtype.kind in ('signed', 'unsigned'):
        return x
    if name in _INEXACT or name in _OF_INEXACT:
        if x.dtype.kind not in ('float', 'complex'):
            raise TypeError('numpy.{} of {!r}: convert it to a float first, as in '
                            'x.astype("f32")'.format(name, x.shape))
    if name in _INEXACT or name in _ROUNDING:
        return getattr(x.graph, _INEXACT.get(name) or _ROUNDING[name])(x)
    if name in _OTHERS:
        return _OTHERS[name](*inputs)
    raise TypeError('numpy.{} is no op of a graph, nor made of some here'.format(name))
