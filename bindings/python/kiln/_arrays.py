"""Shapes, and foreign arrays by NumPy's array interface or Python's buffer protocol."""

import ctypes
import math
from typing import Any, Dict, Iterable, NamedTuple, Optional, Tuple

from ._dtypes import NATIVE, DType, DTypeLike, dtype_name, dtype_number, number_of_type_string
from ._library import lib
from ._structs import Shape as ShapeStruct
from .symbol import Symbol, has_symbols

# The types of the buffer protocol, by kind and size.
_KINDS = {'?': 'b', 'b': 'i', 'h': 'i', 'i': 'i', 'l': 'i', 'q': 'i', 'B': 'u', 'H': 'u', 'I': 'u',
          'L': 'u', 'Q': 'u', 'e': 'f', 'f': 'f', 'd': 'f', 'Zf': 'c', 'Zd': 'c'}
# Integers of less than a byte, of which ml_dtypes keeps the bits alone and the library the value.
_SIGNED = ('s2', 's4')


class Shape(Tuple[int, ...]):
    """The shape of an array: a tuple of its sizes, with the element type. In a graph a size may be
    a `Symbol`; there is no `byte_size` then.

    Attributes:
        dtype: the element type's name
    """

    dtype: str
    _bytes: int

    def __new__(cls, dtype: str, dims: Iterable[int] = (),
                byte_size: Optional[int] = None) -> 'Shape':
        elements: Any = dims
        shape = super().__new__(cls, elements)
        shape.dtype = dtype
        if byte_size is not None:
            shape._bytes = byte_size
        elif has_symbols(shape):
            shape._bytes = -1
        else:
            shape._bytes = math.prod(shape) * lib.kiln_dtype_bits(dtype_number(dtype)) // 8
        return shape

    @property
    def byte_size(self) -> int:
        """Bytes of the elements in row-major order. TypeError where a size is a symbol."""
        if self._bytes < 0:
            for size in self:
                if isinstance(size, Symbol):
                    size.refuse()
        return self._bytes

    @property
    def dims(self) -> Tuple[int, ...]:
        """The sizes."""
        return tuple(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape) and self.dtype != other.dtype:
            return False
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return '{}[{}]'.format(self.dtype, ','.join(map(str, self)))

    def __getnewargs__(self) -> Tuple[Any, ...]:
        return self.dtype, self.dims, self._bytes


class Shaped:
    """An object with a shape, and NumPy's properties of it."""

    __slots__ = ()

    @property
    def shape(self) -> Shape:
        """Its sizes, as a tuple; also its element type and bytes."""
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return DType(self.shape.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, which may be a symbol."""
        return math.prod(self.shape)


class HostArray(NamedTuple):
    """Foreign memory with an array in row-major order."""

    address: int
    dtype: int
    dims: Tuple[int, ...]
    byte_size: int
    readonly: bool
    owner: Any  # keeps the memory


def shape_of(function: Any, *arguments: Any) -> Shape:
    """The shape written by a function into its last parameter."""
    struct = ShapeStruct()
    function(*arguments, ctypes.byref(struct))
    return read_shape(struct)


_MOST_SHAPES = 1024
_shapes: Dict[Any, Shape] = {}


def read_shape(struct: ShapeStruct) -> Shape:
    """The shape in a struct of the library. Equal shapes are mostly one object."""
    dims = tuple(struct.dims[:struct.rank]) if struct.dims else ()
    key = struct.dtype, dims
    shape = _shapes.get(key)
    if shape is None:
        if len(_shapes) >= _MOST_SHAPES:
            _shapes.clear()
        shape = _shapes[key] = Shape(dtype_name(struct.dtype), dims, struct.byte_size)
    return shape


def _with_interface(source: Any, dtype: Optional[int], copy: bool) -> Tuple[Any, Optional[int]]:
    """The array with NumPy's array interface or the buffer protocol, in the library's bytes, and
    the number of its element type if known by name.
    """
    if not hasattr(source, '__array_interface__') and hasattr(source, '__array__'):
        source = source.__array__()
    try:
        own: Optional[int] = dtype_number(source.dtype)
    except (AttributeError, ValueError):
        return source, None
    if dtype_name(own or 0) in _SIGNED and dtype in (None, own):
        if not copy:
            raise ValueError('an array of {} has other bytes in the library: copy it first'.format(
                source.dtype))
        source = source.astype('int8')
    return source, own


def host_array(source: Any, dtype: Optional[DTypeLike] = None, copy: bool = False) -> HostArray:
    """The memory of an array with NumPy's array interface or Python's buffer protocol.

    Args:
        dtype: the element type, if the array's own is not one of the library's
        copy: whether a copy may take the place of memory that is not in row-major order, and of
            numbers and lists of them
    """
    number = None if dtype is None else dtype_number(dtype)
    if copy and isinstance(source, (bool, int, float, complex, list, tuple)):
        import numpy
        source = numpy.asarray(source, None if dtype is None else DType(dtype).dtype)
    source, own = _with_interface(source, number, copy)
    interface = getattr(source, '__array_interface__', None)
    if interface is not None:
        if own is None:
            own = number_of_type_string(interface['typestr'])
        item_size = int(interface['typestr'][2:])
        dims = tuple(interface['shape'])
        contiguous = interface.get('strides') is None
        address, readonly = interface['data']
    else:
        try:
            view = memoryview(source)
        except TypeError:
            raise TypeError('a {} is no array: it has neither NumPy\'s array interface nor the '
                            'buffer protocol'.format(type(source).__name__)) from None
        code = view.format.lstrip('@=' + NATIVE)
        own = number_of_type_string('|{}{}'.format(_KINDS.get(code, '?'), view.itemsize))
        item_size, dims, readonly = view.itemsize, tuple(view.shape or ()), view.readonly
        contiguous = view.c_contiguous and not readonly
        address = (ctypes.addressof(ctypes.c_char.from_buffer(view))
                   if contiguous and view.nbytes else 0)
    owner = (source, interface)
    if not contiguous:
        if not copy:
            raise ValueError('the array is read-only or not in row-major order: copy it first')
        to_bytes = getattr(source, 'tobytes', None) or memoryview(source).tobytes
        data = to_bytes()
        address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
        owner = (data, None)
    if number is None:
        number = own
    if number is None:
        raise ValueError('the elements of the array are of no type of the library: name one')
    if lib.kiln_dtype_bits(number) != 8 * item_size:
        raise ValueError('an element of {} does not take {} bytes'.format(
            dtype_name(number), item_size))
    return HostArray(address, number, dims, math.prod(dims) * item_size, bool(readonly), owner)
