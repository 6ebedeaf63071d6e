"""Element types, shapes and the arrays of others, by NumPy's array interface or buffer protocol."""

import ctypes
import math
import sys
from typing import Any, NamedTuple, Optional, Tuple, Union

from ._library import lib
from ._structs import Shape as ShapeStruct
from ._table import DTYPES

DType = Union[str, int, Any]  # 'f32', its number, or a NumPy type

# The types that NumPy has, as its type strings without the byte order.
_NUMPY = {'pred': 'b1', 's8': 'i1', 's16': 'i2', 's32': 'i4', 's64': 'i8',
          'u8': 'u1', 'u16': 'u2', 'u32': 'u4', 'u64': 'u8',
          'f16': 'f2', 'f32': 'f4', 'f64': 'f8', 'c64': 'c8', 'c128': 'c16'}
_FROM_NUMPY = {numpy: name for name, numpy in _NUMPY.items()}
_NAMES = {number: name for name, number in DTYPES.items()}
# The types that the buffer protocol has, by kind and size.
_KINDS = {'?': 'b', 'b': 'i', 'h': 'i', 'i': 'i', 'l': 'i', 'q': 'i', 'B': 'u', 'H': 'u', 'I': 'u',
          'L': 'u', 'Q': 'u', 'e': 'f', 'f': 'f', 'd': 'f', 'Zf': 'c', 'Zd': 'c'}
_NATIVE = '<' if sys.byteorder == 'little' else '>'


class Shape(NamedTuple):
    """What an array is. A negative size is a symbol; `byte_size` is then -1."""

    dtype: str
    dims: Tuple[int, ...]
    byte_size: int


class HostArray(NamedTuple):
    """Memory of somebody else's that holds an array in row-major order."""

    address: int
    dtype: int
    dims: Tuple[int, ...]
    byte_size: int
    readonly: bool
    owner: Any  # keeps the memory


def dtype_number(dtype: DType) -> int:
    """The number of an element type."""
    if isinstance(dtype, int):
        return dtype
    if isinstance(dtype, str) and dtype in DTYPES:
        return DTYPES[dtype]
    # A NumPy type has its type string; a NumPy scalar class makes an instance that has it.
    if isinstance(dtype, type):
        dtype = getattr(dtype(), 'dtype', dtype)
    name = _of_type_string(getattr(dtype, 'str', dtype))
    if name is None:
        raise ValueError('{!r} is not an element type'.format(dtype))
    return DTYPES[name]


def dtype_name(number: int) -> str:
    """The name of an element type's number."""
    return _NAMES[number]


def _of_type_string(string: Any) -> Optional[str]:
    if not isinstance(string, str) or string[:1] not in ('|', _NATIVE):
        return None
    return _FROM_NUMPY.get(string[1:])


def type_string(dtype: str, item_size: int) -> str:
    """NumPy's type string; raw bytes for types that NumPy lacks."""
    string = _NUMPY.get(dtype, 'V{}'.format(item_size))
    return ('|' if item_size == 1 or string[0] == 'V' else _NATIVE) + string


def shape_of(function: Any, *arguments: Any) -> Shape:
    """The shape that a function writes into its last parameter."""
    struct = ShapeStruct()
    function(*arguments, ctypes.byref(struct))
    dims = tuple(struct.dims[:struct.rank]) if struct.dims else ()
    return Shape(_NAMES[struct.dtype], dims, struct.byte_size)


def host_array(source: Any, dtype: Optional[DType] = None, copy: bool = False) -> HostArray:
    """The memory of an array: what has NumPy's array interface or Python's buffer protocol.

    Args:
        dtype: the element type, where the array's own is not one of the library's
        copy: whether a copy may take the place of memory that is not in row-major order
    """
    interface = getattr(source, '__array_interface__', None)
    if interface is not None:
        own = _of_type_string(interface['typestr'])
        item_size = int(interface['typestr'][2:])
        dims = tuple(interface['shape'])
        contiguous = interface.get('strides') is None
        address, readonly = interface['data']
    else:
        view = memoryview(source)
        own = _of_type_string('|{}{}'.format(_KINDS.get(view.format.lstrip('@=' + _NATIVE), '?'),
                                             view.itemsize))
        item_size, dims, readonly = view.itemsize, tuple(view.shape or ()), view.readonly
        contiguous = view.c_contiguous and not readonly
        address = (ctypes.addressof(ctypes.c_char.from_buffer(view))
                   if contiguous and view.nbytes else 0)
    owner = (source, interface)
    if not contiguous:
        if not copy:
            raise ValueError('the array is read-only or not in row-major order: copy it first')
        data = memoryview(source).tobytes()
        address = ctypes.cast(data, ctypes.c_void_p).value or 0
        owner = (data, None)
    number = DTYPES.get(own or '') if dtype is None else dtype_number(dtype)
    if number is None:
        raise ValueError('the elements of the array are of no type of the library: name one')
    if lib.kiln_dtype_bits(number) != 8 * item_size:
        raise ValueError('an element of {} does not take {} bytes'.format(
            _NAMES.get(number, number), item_size))
    return HostArray(address, number, dims, math.prod(dims) * item_size, bool(readonly), owner)
