"""NumPy arrays for the library, and in its memory. NumPy is imported on first use."""

from typing import Any, Dict, Sequence, Tuple, Union

from ._arrays import Shape
from ._dtypes import DType, DTypeLike, is_native, numpy_dtype, type_string
from ._table import ALIGNMENT


class Memory:
    """Memory exposed to NumPy as an array, which keeps this object alive."""

    __slots__ = ('owner', '__array_interface__', '__weakref__')

    def __init__(self, owner: Any, address: int, shape: Shape, readonly: bool) -> None:
        self.owner = owner
        item_size = DType(shape.dtype).itemsize
        self.__array_interface__: Dict[str, Any] = {
            'version': 3, 'shape': shape.dims, 'typestr': type_string(shape.dtype, item_size),
            'data': (address, readonly)}


def array_of(memory: Memory, dtype: str) -> Any:
    """The array that a memory is: of NumPy's type, or that of ml_dtypes; without this package, of
    raw bytes.
    """
    import numpy
    array = numpy.asarray(memory)
    if is_native(dtype):
        return array
    kind = numpy_dtype(dtype)
    return array if kind is None else array.view(kind)


def converted(array: Any, dtype: Any, copy: Any) -> Any:
    """The result of `__array__` for a requested type, or a copy (None: if needed)."""
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError('a conversion of {} to {} needs a copy'.format(array.dtype, dtype))
        return array.astype(dtype)
    return array.copy() if copy else array


def empty(shape: Union[int, Sequence[int]], dtype: DTypeLike = float) -> Any:
    """An uninitialised NumPy array, aligned to `kiln.ALIGNMENT`: the library uses it in place, for
    arguments and results, on all devices in host memory.
    """
    import numpy
    dims: Tuple[int, ...] = tuple(shape) if not isinstance(shape, int) else (shape,)
    kind = DType(dtype).dtype
    size = kind.itemsize
    for n in dims:
        if n < 0:
            raise ValueError('negative dimensions are not allowed')
        size *= n
    memory = numpy.empty(size + ALIGNMENT, numpy.uint8)
    skip = -memory.ctypes.data % ALIGNMENT
    return memory[skip:skip + size].view(kind).reshape(dims)


def full(shape: Union[int, Sequence[int]], value: Any, dtype: DTypeLike = float) -> Any:
    """`empty`, filled with a value."""
    array = empty(shape, dtype)
    array[...] = value
    return array


def zeros(shape: Union[int, Sequence[int]], dtype: DTypeLike = float) -> Any:
    """`empty`, filled with zeros."""
    return full(shape, 0, dtype)


def empty_like(array: Any) -> Any:
    """`empty` of the shape and element type of an array, a buffer or a value of a graph."""
    return empty(tuple(array.shape), array.dtype)
