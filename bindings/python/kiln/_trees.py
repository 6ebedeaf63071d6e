"""Nested tuples, lists and dicts as hashable structures, and their leaves."""

from typing import Any, Iterator, List

from .value import Value

_LEAF = '*'


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
        return _LEAF
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
    if structure is _LEAF:
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
    if structure is _LEAF:
        yield path
        return
    keys = structure[2] if structure[0] is dict else getattr(
        structure[0], '_fields', range(len(structure[1])))
    for key, child in zip(keys, structure[1]):
        yield from paths(child, '{}.{}'.format(path, key))
