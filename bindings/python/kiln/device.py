"""Devices, the arrays on them, and the end of asynchronous work."""

import ctypes
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from . import _dlpack, _structs
from ._arrays import DType, Shape, dtype_number, host_array, shape_of, type_string
from ._handle import Handle, drop, forget, held, hold
from ._library import KilnError, borrowed_error, decoded, ints, lib, made


class MemoryInfo(NamedTuple):
    """What has been given out of a memory, in bytes."""

    live_bytes: int
    peak_bytes: int
    limit_bytes: int  # 0 for no limit but the machine's


def memory_info(function: Callable[..., Any], handle: Handle) -> MemoryInfo:
    """What a function of the library's tells of a memory."""
    struct = _structs.MemoryInfo()
    function(handle, ctypes.byref(struct))
    return MemoryInfo(struct.live_bytes, struct.peak_bytes, struct.limit_bytes)


class Event(Handle):
    """The completion of asynchronous work, and its failure if it failed."""

    _noun = 'event'

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits for the work, at most `timeout` seconds; raises the work's error.

        Raises:
            KilnError: of the work, or with the code DEADLINE_EXCEEDED
        """
        lib.kiln_event_wait(self, -1 if timeout is None else max(0, int(timeout * 1e9)))

    @property
    def ready(self) -> bool:
        """Whether the work has ended, well or not."""
        return bool(lib.kiln_event_is_ready(self))

    def on_ready(self, callback: Callable[[Optional[KilnError]], None]) -> None:
        """Has `callback` called once, with the work's error or None, when the work has ended: now,
        or by a thread of the library. The context must allow that (`callbacks_from_any_thread`).
        """
        number = hold(callback)
        try:
            lib.kiln_event_on_ready(self, _call_ready, number, forget)
        except KilnError:
            drop(number)
            raise


@_structs.ReadyFunction
def _call_ready(number: int, error: Optional[int]) -> None:
    held(number)(borrowed_error(error) if error else None)


class Device(Handle):
    """Where graphs are compiled for, and where buffers live."""

    _noun = 'device'

    @property
    def name(self) -> str:
        """'CPU:0' and so on."""
        return decoded(lib.kiln_device_name, self) or ''

    @property
    def description(self) -> str:
        """One line on what code is made for."""
        return decoded(lib.kiln_device_description, self) or ''

    @property
    def memory(self) -> MemoryInfo:
        """What has been given out of its memory."""
        return memory_info(lib.kiln_device_memory, self)

    def __repr__(self) -> str:
        return '<kiln.Device {}>'.format(self.name)

    def zeros(self, dtype: DType, dims: Sequence[int] = ()) -> 'Buffer':
        """A buffer of zeros, in memory of the library's."""
        return Buffer(made(lib.kiln_buffer_create, self, dtype_number(dtype), *ints(dims)))

    def copy(self, array: Any, dtype: Optional[DType] = None) -> 'Buffer':
        """A buffer with a copy of an array.

        Args:
            array: what has NumPy's array interface or Python's buffer protocol
            dtype: the element type, where the array's own is not one of the library's
        """
        host = host_array(array, dtype, copy=True)
        return Buffer(made(lib.kiln_buffer_copy_host, self, host.dtype, *ints(host.dims),
                           host.address, host.byte_size))

    def borrow(self, array: Any, dtype: Optional[DType] = None) -> 'Buffer':
        """A buffer that is the memory of an array, which is kept for as long as the library uses
        it. Executions read the array, or write it where the buffer is one of their results. Memory
        that is not at a multiple of `kiln.ALIGNMENT` is copied around each execution.
        """
        host = host_array(array, dtype)
        number = hold(host)
        try:
            address = made(lib.kiln_buffer_adopt_host, self, host.dtype, *ints(host.dims),
                           host.address, host.byte_size, forget, number)
        except KilnError:
            drop(number)
            raise
        return Buffer(address, host.readonly)

    def from_dlpack(self, source: Any) -> 'Buffer':
        """A buffer of what has DLPack's protocol (`__dlpack__`): PyTorch's, CuPy's, JAX's or NumPy's
        arrays. In the array's own memory where that is the device's, in row-major order and at a
        multiple of `kiln.ALIGNMENT`; else a copy.
        """
        return Buffer(_dlpack.take(self, source))


class Buffer(Handle):
    """An array on a device, in row-major order. `numpy.asarray(buffer)` is the same memory, to be
    read; it waits for the value.
    """

    _noun = 'buffer'

    def __init__(self, address: int, readonly: bool = False) -> None:
        super().__init__(address)
        self.readonly = readonly  # executions must not write it
        self._exported = False

    @property
    def shape(self) -> Shape:
        """Element type, sizes and bytes."""
        return shape_of(lib.kiln_buffer_shape, self)

    @property
    def device(self) -> Device:
        """The device it is on."""
        return Device.borrowed(lib.kiln_buffer_device(self))

    @property
    def address(self) -> int:
        """Where its elements are, for reading; waits for them."""
        place = ctypes.c_void_p()
        lib.kiln_buffer_data(self, ctypes.byref(place))
        return place.value or 0

    @property
    def device_address(self) -> int:
        """Where the device has its elements, for reading by other work there; waits for them."""
        place = ctypes.c_void_p()
        lib.kiln_buffer_device_data(self, ctypes.byref(place))
        return place.value or 0

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        """The buffer for another library, as that asks for it. The elements are there when this
        returns, whatever the stream; they must not be written.
        """
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError('the buffer is on {}: copy it first'.format(self.device.name))
        return _dlpack.export(self.to(self.device) if copy else self, max_version)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """DLPack's type and number of its device."""
        return _dlpack.device_of(self.device)

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        shape = self.shape
        item_size = lib.kiln_dtype_bits(dtype_number(shape.dtype)) // 8
        self._exported = True
        return {'version': 3, 'shape': shape.dims, 'typestr': type_string(shape.dtype, item_size),
                'data': (self.address, True)}

    def close(self) -> None:
        """Gives the buffer back. Where NumPy arrays may be using its memory, nothing is done: it
        is given back with the last of them.
        """
        if not self._exported:
            super().close()

    def tobytes(self) -> bytes:
        """A copy of the elements, from any device; waits for them."""
        size = self.shape.byte_size
        data = ctypes.create_string_buffer(size)
        lib.kiln_buffer_copy_to_host(self, data, size)
        return data.raw

    def to(self, device: Device) -> 'Buffer':
        """A copy on a device."""
        return Buffer(made(lib.kiln_buffer_copy_to_device, self, device))

    def event(self) -> Event:
        """An event that is ready when the value is."""
        return Event(made(lib.kiln_buffer_ready, self))

    def __repr__(self) -> str:
        shape = self.shape
        return '<kiln.Buffer {}[{}]>'.format(shape.dtype, ','.join(map(str, shape.dims)))
