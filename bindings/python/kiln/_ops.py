"""The builder functions as methods, from the table of ops."""

import ctypes
import inspect
import keyword
from typing import Any, Callable, Dict, Iterable, Iterator, List

from ._arrays import DType, dtype_number
from ._library import ints, lib, text
from ._schema import Op, Parameter
from ._table import DIRECTIONS, OPS


def _values(values: Iterable[Any]) -> List[Any]:
    ids = [v.id for v in values]
    return [(ctypes.c_uint64 * len(ids))(*ids), len(ids)]


def _graphs(graphs: Iterable[Any]) -> List[Any]:
    addresses = [g._as_parameter_ for g in graphs]
    return [(ctypes.c_void_p * len(addresses))(*addresses), len(addresses)]


def _direction(direction: str) -> List[int]:
    if direction not in DIRECTIONS:
        raise ValueError('{!r} is none of {}'.format(direction, ', '.join(DIRECTIONS)))
    return [DIRECTIONS[direction]]


def _dtype(dtype: DType) -> List[int]:
    return [dtype_number(dtype)]


def _per_dimension(default: int) -> Callable[..., List[Any]]:
    """Three lists with an element per dimension; `default` stands for a third that is missing."""
    def convert(first: Iterable[int], second: Iterable[int], third: Any) -> List[Any]:
        lists = [list(first), list(second)]
        lists.append([default] * len(lists[0]) if third is None else list(third))
        if len({len(each) for each in lists}) != 1:
            raise ValueError('the lists must have an element for each dimension')
        return [ints(each)[0] for each in lists] + [len(lists[0])]
    return convert


def _window(*lists: Any) -> List[Any]:
    """The size per dimension, then five lists that may be None, for what is usual."""
    given = [None if each is None else list(each) for each in lists]
    rank = len(given[0])
    if any(each is not None and len(each) != rank for each in given):
        raise ValueError('the lists must have an element for each dimension')
    return [None if each is None else ints(each)[0] for each in given] + [rank]


def _convolution_window(*lists: Any) -> List[Any]:
    """A window, and whether each dimension is reversed."""
    *window, rank = _window(*lists[:-1])
    reversal = None
    if lists[-1] is not None:
        truths = [int(truth) for truth in lists[-1]]
        if len(truths) != rank:
            raise ValueError('the lists must have an element for each dimension')
        reversal = (ctypes.c_int32 * rank)(*truths)
    return window + [reversal, rank]


def _groups(groups: Iterable[Iterable[int]]) -> List[Any]:
    """Lists of numbers as all numbers in a row, and the lengths."""
    lists = [list(group) for group in groups]
    numbers, _ = ints([number for each in lists for number in each])
    sizes, count = ints([len(each) for each in lists])
    return [numbers, sizes, count]


class _Kind:
    """How a kind of parameter looks in Python, and what it becomes in C.

    Attributes:
        convert: makes the list of C's arguments from Python's
        names: Python's parameters, where they are not one of the parameter's own name
        optional: how many of these may be left out, the last ones
    """

    def __init__(self, convert: Callable[..., List[Any]], *names: str,
                 optional: int = 0) -> None:
        self.convert = convert
        self.names = names
        self.optional = optional


_KINDS: Dict[str, _Kind] = {
    'value': _Kind(lambda value: [value.id]),
    'values': _Kind(_values),
    'int': _Kind(lambda number: [number]),
    'ints': _Kind(lambda numbers: list(ints(numbers))),
    'bool': _Kind(lambda truth: [int(truth)]),
    'direction': _Kind(_direction),
    'slices': _Kind(_per_dimension(1), 'start', 'limit', 'stride', optional=1),
    'padding': _Kind(_per_dimension(0), 'low', 'high', 'interior', optional=1),
    'window': _Kind(_window, 'window_dimensions', 'window_strides', 'base_dilations',
                    'window_dilations', 'padding_low', 'padding_high', optional=5),
    'convolution_window': _Kind(_convolution_window, 'window_dimensions', 'window_strides',
                                'base_dilations', 'window_dilations', 'padding_low',
                                'padding_high', 'window_reversal', optional=6),
    'float': _Kind(lambda number: [number]),
    'groups': _Kind(_groups),
    'text': _Kind(lambda string: list(text(string))),
    'graph': _Kind(lambda graph: [graph]),
    'graphs': _Kind(_graphs),
    'dtype': _Kind(_dtype),
    'dims': _Kind(lambda dims: list(ints(dims))),
}
# What an optional parameter is when it is left out.
_ABSENT = {'ints': (), 'int': 0, 'groups': (), 'dims': (), 'dtype': 0, 'text': '', 'bool': False}


def _python_parameters(parameter: Parameter) -> Iterator[inspect.Parameter]:
    def make(name: str, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)

    kind = _KINDS[parameter.kind]
    if kind.names:
        needed = len(kind.names) - kind.optional
        for at, name in enumerate(kind.names):
            yield make(name, inspect.Parameter.empty if at < needed else None)
    elif parameter.optional:
        yield make(parameter.name, _ABSENT[parameter.kind])
    else:
        yield make(parameter.name)


def _method(name: str, op: Op) -> Callable[..., Any]:
    function = getattr(lib, 'kiln_op_' + name)
    taken = [(_KINDS[p.kind].convert, [q.name for q in _python_parameters(p)])
             for p in op.parameters]
    # What may be left out comes last.
    parameters = sorted((q for p in op.parameters for q in _python_parameters(p)),
                        key=lambda q: q.default is not inspect.Parameter.empty)
    signature = inspect.Signature(
        [inspect.Parameter('self', inspect.Parameter.POSITIONAL_OR_KEYWORD)] + parameters)

    def method(*positional: Any, **named: Any) -> Any:
        bound = signature.bind(*positional, **named)
        bound.apply_defaults()
        given = bound.arguments
        arguments = [item for convert, names in taken
                     for item in convert(*(given[n] for n in names))]
        graph = given['self']
        return graph.value(function(graph, *arguments))

    method.__doc__ = op.doc
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def add_methods(graph: type) -> None:
    """Gives a class a method for each op."""
    for name, op in OPS.items():
        method = _method(name, op)
        method.__name__ = name + '_' if keyword.iskeyword(name) else name
        method.__qualname__ = '{}.{}'.format(graph.__name__, method.__name__)
        method.__module__ = graph.__module__
        setattr(graph, method.__name__, method)
