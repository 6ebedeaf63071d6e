"""Nested tuples, lists and dicts as hashable structures, and their leaves."""

import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._dtypes import DType, numpy_dtype
from .device import Buffer
from .value import Value

LEAF = '*'


def flatten(tree: Any, leaves: List[Any]) -> Any:
    """The structure of a tree, whose leaves are appended to a list: for a container its type, its
    children's structures and, for a dict, its keys; for None itself.
    """
    if not isinstance(tree, (tuple, list, dict)):
        if tree is None:
            return None
        if type(tree) is Value and tree.dtype.kind == 'tuple':
            return tuple, tuple([flatten(child, leaves) for child in tree])
        leaves.append(tree)
        return LEAF
    if isinstance(tree, dict):
        return dict, tuple([flatten(child, leaves) for child in tree.values()]), tuple(tree)
    kind = type(tree)
    if not hasattr(kind, '_fields'):
        kind = tuple if isinstance(tree, tuple) else list
    return kind, tuple([flatten(child, leaves) for child in tree])


def unflatten(structure: Any, leaves: Iterator[Any]) -> Any:
    """The tree of a structure with these leaves."""
    if structure is None:
        return None
    if structure is LEAF:
        return next(leaves)
    kind = structure[0]
    children = [unflatten(child, leaves) for child in structure[1]]
    if kind is dict:
        return dict(zip(structure[2], children))
    return kind(*children) if hasattr(kind, '_fields') else kind(children)


def paths(structure: Any, path: str) -> Iterator[str]:
    """A name for each leaf, such as 'params.weights.0'."""
    if structure is None:
        return
    if structure is LEAF:
        yield path
        return
    keys = structure[2] if structure[0] is dict else getattr(
        structure[0], '_fields', range(len(structure[1])))
    for key, child in zip(keys, structure[1]):
        yield from paths(child, '{}.{}'.format(path, key))


# --- Leaves

# Element type and sizes of an argument, and whether it is a number.
Spec = Tuple[str, Tuple[int, ...], bool]
NUMBERS: Dict[type, Spec] = {bool: ('pred', (), True), int: ('s64', (), True),
                               float: ('f64', (), True), complex: ('c128', (), True)}
_names: Dict[Any, str] = {}  # of NumPy's types


def _name_of(dtype: Any) -> str:
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = DType(dtype).name
    return name


def is_array(leaf: Any) -> bool:
    """Whether it is exactly an array of NumPy's."""
    numpy = sys.modules.get('numpy')
    return numpy is not None and type(leaf) is numpy.ndarray


def spec_of(leaf: Any) -> Optional[Spec]:
    """The spec of a number, an array of NumPy's or a buffer; None for other objects."""
    kind = type(leaf)
    if kind is Buffer:
        shape = leaf.shape
        return shape.dtype, shape.dims, False
    number = NUMBERS.get(kind)
    if number is not None:
        return number
    numpy = sys.modules.get('numpy')
    if numpy is not None and isinstance(leaf, (numpy.ndarray, numpy.generic)):
        return _name_of(leaf.dtype), leaf.shape, isinstance(leaf, numpy.generic)
    for base in (int, float, complex):  # an IntEnum is an int
        if isinstance(leaf, base):
            return NUMBERS[base]
    return None


def number_array(number: Any, dtype: str) -> Any:
    """A number as an array of an element type."""
    import numpy
    return numpy.array(number, numpy_dtype(dtype))
