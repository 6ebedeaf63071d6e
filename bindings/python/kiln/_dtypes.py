"""Element types, under the names of HLO, of NumPy and of ml_dtypes."""

import importlib
import sys
from typing import Any, ClassVar, Dict, Optional, Tuple, Union

from ._library import lib
from ._table import DTYPES

# The types of NumPy's own: name there, and type string without the byte order.
_NUMPY = {'pred': ('bool', 'b1'), 's8': ('int8', 'i1'), 's16': ('int16', 'i2'),
          's32': ('int32', 'i4'), 's64': ('int64', 'i8'), 'u8': ('uint8', 'u1'),
          'u16': ('uint16', 'u2'), 'u32': ('uint32', 'u4'), 'u64': ('uint64', 'u8'),
          'f16': ('float16', 'f2'), 'f32': ('float32', 'f4'), 'f64': ('float64', 'f8'),
          'c64': ('complex64', 'c8'), 'c128': ('complex128', 'c16')}
# The types that NumPy has from ml_dtypes.
_ML_DTYPES = {'bf16': 'bfloat16', 's4': 'int4', 'u4': 'uint4', 's2': 'int2', 'u2': 'uint2',
              'f8e5m2': 'float8_e5m2', 'f8e4m3fn': 'float8_e4m3fn', 'f8e4m3': 'float8_e4m3',
              'f8e3m4': 'float8_e3m4', 'f8e4m3b11fnuz': 'float8_e4m3b11fnuz',
              'f8e5m2fnuz': 'float8_e5m2fnuz', 'f8e4m3fnuz': 'float8_e4m3fnuz',
              'f8e8m0fnu': 'float8_e8m0fnu', 'f4e2m1fn': 'float4_e2m1fn',
              'f6e2m3fn': 'float6_e2m3fn', 'f6e3m2fn': 'float6_e3m2fn'}
NATIVE = '<' if sys.byteorder == 'little' else '>'
_NAMES = {number: name for name, number in DTYPES.items()}
# What Python and NumPy call the types.
_OTHER_NAMES = dict([(long, name) for name, (long, _) in _NUMPY.items()] +
                    [(long, name) for name, long in _ML_DTYPES.items()] +
                    [(short, name) for name, (_, short) in _NUMPY.items()])
_PYTHON = {bool: 'pred', int: 's64', float: 'f64', complex: 'c128'}
_KINDS = {'p': 'pred', 's': 'signed', 'u': 'unsigned', 'f': 'float', 'b': 'float', 'c': 'complex',
          'tuple': 'tuple', 'token': 'token'}


class DType:
    """An element type: `DType('f32')`, `DType('float32')` and `DType(numpy.float32)` are the same
    object. It equals each of these names and types, and NumPy accepts it as a dtype.

    Attributes:
        name: its name in HLO
        number: its number in the C ABI
        kind: 'pred', 'signed', 'unsigned', 'float', 'complex', 'tuple' or 'token'
    """

    __slots__ = ('name', 'number', 'kind', '_numpy')
    name: str
    number: int
    kind: str
    _numpy: Any
    _instances: ClassVar[Dict[int, 'DType']] = {}

    def __new__(cls, dtype: 'DTypeLike') -> 'DType':
        if isinstance(dtype, DType):
            return dtype
        number = dtype_number(dtype)
        instance = cls._instances.get(number)
        if instance is None:
            instance = super().__new__(cls)
            instance.name, instance.number = dtype_name(number), number
            kind = _KINDS.get(instance.name) or _KINDS[instance.name[0]]
            instance.kind, instance._numpy = kind, None
            instance = cls._instances.setdefault(number, instance)
        return instance

    @property
    def bits(self) -> int:
        """Bits of one element in memory; 0 for a tuple or a token."""
        return int(lib.kiln_dtype_bits(self.number))

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory; 0 for a tuple or a token."""
        return self.bits // 8

    @property
    def dtype(self) -> Any:
        """NumPy's type. Those that are not NumPy's own need the package ml_dtypes."""
        found = numpy_dtype(self.name)
        if found is None:
            raise TypeError('NumPy has {} from the package ml_dtypes, which is not there'.format(
                self.name) if self.name in _ML_DTYPES else 'NumPy has no ' + self.name)
        return found

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        try:
            return dtype_number(other) == self.number
        except (ValueError, TypeError):
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return 'kiln.DType({!r})'.format(self.name)

    def __reduce__(self) -> Tuple[Any, ...]:
        return DType, (self.name,)


# A `DType`, 'f32', 'float32', float, a type of NumPy's or ml_dtypes', or the type's number.
DTypeLike = Union[DType, str, int, type, Any]


def dtype_number(dtype: DTypeLike) -> int:
    """The number of an element type."""
    if isinstance(dtype, DType):
        return dtype.number
    if isinstance(dtype, str):
        number = DTYPES.get(dtype)
        if number is not None:
            return number
        name = _OTHER_NAMES.get(dtype.lstrip('|=' + NATIVE))
    elif isinstance(dtype, int) and not isinstance(dtype, bool):
        if dtype in _NAMES:
            return dtype
        name = None
    else:
        name = _of_numpy(dtype)
    if name is None:
        raise ValueError('{!r} is not an element type'.format(dtype))
    return DTYPES[name]


def dtype_name(number: int) -> str:
    """The name of an element type's number."""
    return _NAMES[number]


def _of_numpy(dtype: Any) -> Optional[str]:
    """The name of a NumPy type, of a NumPy scalar class, or of a Python type."""
    if isinstance(dtype, type):
        if dtype in _PYTHON:
            return _PYTHON[dtype]
        # Some classes of NumPy's share a type with another: longlong.
        name = _OTHER_NAMES.get(dtype.__name__)
        if name is not None or dtype.__module__ != 'numpy':
            return name
        dtype = getattr(dtype(), 'dtype', None)
    if not getattr(dtype, 'isnative', False):
        return None
    return _OTHER_NAMES.get(getattr(dtype, 'name', ''))


def numpy_dtype(name: str) -> Any:
    """NumPy's type for a name in HLO; None if there is none, or ml_dtypes is missing."""
    instance = DType(name)
    if instance._numpy is None:
        if name in _NUMPY:
            import numpy
            instance._numpy = numpy.dtype(_NUMPY[name][0])
        elif name in _ML_DTYPES:
            instance._numpy = _of_ml_dtypes(_ML_DTYPES[name])
    return instance._numpy


def _of_ml_dtypes(name: str) -> Any:
    try:
        import numpy
        return numpy.dtype(getattr(importlib.import_module('ml_dtypes'), name))
    except Exception:  # one that NumPy's version does not suit may raise anything
        return None


def number_of_type_string(string: str) -> Optional[int]:
    """The number of NumPy's type string, unless the library lacks it."""
    try:
        return dtype_number(string)
    except ValueError:
        return None


_RANKS = {'pred': 0, 'signed': 1, 'unsigned': 1, 'float': 2, 'complex': 3}


def rank_of(dtype: DType) -> int:
    """0 for pred, 1 for integers, 2 for floats, 3 for complex numbers: each holds numbers of those
    before it; -1 for other types.
    """
    return _RANKS.get(dtype.kind, -1)


def number_dtype(number: Any) -> DType:
    """The element type of a Python number, or of a NumPy scalar."""
    return DType(number.dtype if hasattr(number, 'dtype') else
                 next(kind for kind in _PYTHON if isinstance(number, kind)))


def checked_number(number: Any, dtype: DType) -> Any:
    """A number as a Python number, if an element type can hold numbers of its kind."""
    item = number.item() if hasattr(number, 'item') else number
    if not isinstance(item, (bool, int, float, complex)):
        item = float(item)  # of ml_dtypes
    rank = 0 if isinstance(item, bool) else 1 if isinstance(item, int) else (
        2 if isinstance(item, float) else 3)
    if rank > _RANKS.get(dtype.kind, -1):
        raise TypeError('{!r} is no number of {}: convert the value first, as in '
                        'x.astype({!r})'.format(item, dtype, ('s32', 's32', 'f32', 'c64')[rank]))
    if dtype.kind in ('signed', 'unsigned'):
        bits = int(dtype.name[1:])
        low = -(1 << (bits - 1)) if dtype.kind == 'signed' else 0
        if not low <= item < low + (1 << bits):
            raise OverflowError('{} is no number of {}'.format(item, dtype))
    return item


def is_native(name: str) -> bool:
    """Whether it is one of NumPy's own types."""
    return name in _NUMPY


def type_string(name: str, item_size: int) -> str:
    """NumPy's type string; raw bytes for types that NumPy lacks."""
    string = _NUMPY[name][1] if name in _NUMPY else 'V{}'.format(item_size)
    return ('|' if item_size == 1 or string[0] == 'V' else NATIVE) + string
