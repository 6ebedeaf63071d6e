"""NumPy arrays as arguments of one call, in a microsecond or two."""

import ctypes
import math
import sys
from typing import Any, Optional, Tuple

from ._arrays import Shape
from ._dtypes import dtype_number, numpy_dtype
from ._library import ints, lean, raise_error
from .device import Buffer, Device

_borrow = lean('kiln_buffer_borrow_host')
_from_buffer = ctypes.c_char.from_buffer
_addressof = ctypes.addressof


class Lender:
    """Makes buffers of arrays for one argument of an executable."""

    __slots__ = ('_ndarray', '_numpy', '_shape', '_rank', '_dims', '_place', '_number', '_size',
                 '_device', '_fixed', '_last')

    def __init__(self, device: Device, shape: Shape) -> None:
        self._ndarray = getattr(sys.modules.get('numpy'), 'ndarray', None)
        self._numpy = None if self._ndarray is None else numpy_dtype(shape.dtype)
        self._shape = shape.dims
        self._dims, self._rank = ints(shape)
        self._place = _addressof(self._dims)
        self._number, self._size = dtype_number(shape.dtype), shape.byte_size
        self._device = device
        # The last buffer, with its address: arrays are often passed again.
        self._last: Tuple[int, Optional[Buffer]] = 0, None
        # Integers of less than a byte have other bytes in NumPy.
        self._fixed = self._size > 0 and math.prod(self._shape) > 0 and shape.dtype not in (
            's2', 's4')

    def lend(self, array: Any) -> Optional[Buffer]:
        """A buffer in the memory of an array, which must outlive it; None if the array is not a
        NumPy array of the argument's form, or is read-only.
        """
        if (type(array) is not self._ndarray or array.dtype != self._numpy
                or array.shape != self._shape or not self._fixed
                or not array.flags.c_contiguous):
            return None
        try:
            address = _addressof(_from_buffer(array))
        except (TypeError, ValueError, BufferError):
            return None
        last = self._last
        if last[0] == address:
            return last[1]
        place = ctypes.c_void_p()
        error = _borrow(self._device._as_parameter_, self._number, self._place,
                        self._rank, address, self._size, None, _addressof(place))
        if error is not None:
            raise_error(error)
        buffer = Buffer(place.value or 0)
        self._last = address, buffer
        return buffer
