"""Devices, the arrays on them, and the end of asynchronous work."""

import ctypes
import operator
import struct
import weakref
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence, Tuple, Union

from . import _dlpack, _numpy, _structs
from ._arrays import Shape, Shaped, host_array, shape_of
from ._dtypes import DType, DTypeLike, checked_number, dtype_number
from ._handle import Handle, drop, forget, held, hold
from ._interrupt import Job, wait
from ._library import KilnError, borrowed_error, decoded, ints, lean, lib, made
from ._table import Code


class MemoryInfo(NamedTuple):
    """The use of a memory, in bytes."""

    live_bytes: int
    peak_bytes: int
    limit_bytes: int  # 0 for no limit but the machine's


def memory_info(function: Callable[..., Any], handle: Handle) -> MemoryInfo:
    """The use of a memory as reported by a library function."""
    told = _structs.MemoryInfo()
    function(handle, ctypes.byref(told))
    return MemoryInfo(told.live_bytes, told.peak_bytes, told.limit_bytes)


class Cancellation:
    """Ends executions, or a compilation, that were given it, with the code CANCELLED, once it is
    set.
    """

    __slots__ = ('_flag', '_as_parameter_')

    def __init__(self) -> None:
        self._flag = ctypes.c_int32(0)
        self._as_parameter_ = ctypes.addressof(self._flag)

    def set(self) -> None:
        """Requests the end; any thread may."""
        self._flag.value = 1

    def clear(self) -> None:
        """Resets it for further use, once the cancelled work has ended."""
        self._flag.value = 0

    @property
    def is_set(self) -> bool:
        """Whether the end was requested."""
        return bool(self._flag.value)


class Event(Handle):
    """The completion of asynchronous work, and its error if it failed."""

    __slots__ = ('_cancellation',)
    _noun = 'event'

    def __init__(self, address: int, cancellation: Optional[Cancellation] = None) -> None:
        super().__init__(address)
        self._cancellation = cancellation

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits for the work, at most `timeout` seconds; raises the work's error. Ctrl-C ends the
        wait, and not the work.

        Raises:
            KilnError: of the work, or with the code DEADLINE_EXCEEDED
        """
        wait(self._as_parameter_, timeout)

    def cancel(self) -> None:
        """Asks the execution that was started to end, with the code CANCELLED; any thread may. It
        does not wait for that. An event of another kind cannot be cancelled.
        """
        if self._cancellation is None:
            raise ValueError('this is no event of Executable.start')
        self._cancellation.set()

    @property
    def ready(self) -> bool:
        """Whether the work has ended, with or without an error."""
        return bool(lib.kiln_event_is_ready(self))

    def on_ready(self, callback: Callable[[Optional[KilnError]], None]) -> None:
        """Has `callback` called once, with the work's error or None, when the work has ended: now,
        or by a thread of the library. The context must allow that (`callbacks_from_any_thread`).
        """
        number = hold(callback)
        try:
            lib.kiln_event_on_ready(self, _ready_function, number, forget)
        except KilnError:
            drop(number)
            raise

    def __repr__(self) -> str:
        return '<kiln.Event {}>'.format(
            'closed' if self.closed else 'ready' if self.ready else 'pending')


def _call_ready(number: int, error: Optional[int]) -> None:
    held(number)(borrowed_error(error) if error else None)


_ready_function = _structs.ReadyFunction(_call_ready)


class Device(Handle):
    """The target of compilations and the place of buffers."""

    __slots__ = ('_name',)
    _noun = 'device'

    def __init__(self, address: int) -> None:
        super().__init__(address)
        self._name = decoded(lib.kiln_device_name, address) or ''

    @property
    def name(self) -> str:
        """'CPU:0' and so on."""
        return self._name

    @property
    def description(self) -> str:
        """One line on the target of code generation."""
        return decoded(lib.kiln_device_description, self) or ''

    @property
    def threads(self) -> int:
        """Threads of the host that run its work: its share of the context's."""
        return int(lib.kiln_device_threads(self))

    @property
    def memory(self) -> MemoryInfo:
        """The use of its memory."""
        return memory_info(lib.kiln_device_memory, self)

    def __repr__(self) -> str:
        return '<kiln.Device {}>'.format(self._name)

    def zeros(self, dtype: DTypeLike, dims: Sequence[int] = ()) -> 'Buffer':
        """A buffer of zeros, in memory of the library; of dtype 'token' a token that is ready."""
        return Buffer(made(lib.kiln_buffer_create, self, dtype_number(dtype), *ints(dims)))

    def copy(self, array: Any, dtype: Optional[DTypeLike] = None) -> 'Buffer':
        """A buffer with a copy of an array.

        Args:
            array: what has NumPy's array interface or Python's buffer protocol, or a number, or
                lists of numbers
            dtype: the element type of numbers, which is NumPy's choice else; or that of an array
                whose own is not one of the library's
        """
        host = host_array(array, dtype, copy=True)
        return Buffer(made(lib.kiln_buffer_copy_host, self, host.dtype, *ints(host.dims),
                           host.address, host.byte_size))

    def borrow(self, array: Any, dtype: Optional[DTypeLike] = None) -> 'Buffer':
        """A buffer that is the memory of an array, which is kept for as long as the library uses
        it. Executions read the array, or write it where the buffer is one of their results. Results
        in memory that is not at a multiple of `kiln.ALIGNMENT` are copied there after each execution.
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

    def _argument(self, array: Any, dtype: str) -> 'Buffer':
        """A buffer of an argument of that element type: the memory of an array, as `borrow`, where
        that is in the library's form, else a copy; a number as an array.
        """
        if isinstance(array, Buffer):
            return array
        if isinstance(array, (bool, int, float, complex)):
            kind = DType(dtype)
            array = _numpy.full((), checked_number(array, kind), kind)
        elif hasattr(array, '__dlpack__') and not hasattr(array, '__array_interface__'):
            return self.from_dlpack(array)
        try:
            return self.borrow(array)
        except ValueError:
            return self.copy(array)

    def from_dlpack(self, source: Any) -> 'Buffer':
        """A buffer of an object with DLPack's protocol (`__dlpack__`), such as arrays of PyTorch,
        CuPy, JAX or NumPy. In the array's own memory where that is the device's, in row-major order
        and, on GPUs, at a multiple of `kiln.ALIGNMENT`; else a copy.
        """
        return Buffer(_dlpack.take(self, source))


class Buffer(Handle, Shaped):
    """An array on a device, in row-major order. `numpy.asarray(buffer)` is the same memory, to be
    read; it waits for the value. NumPy's functions take a buffer for an array, and so do
    comparisons; a buffer of one element is a number, too: `float(buffer)`. It cannot be pickled,
    as `numpy.asarray(buffer)` can; `copy.copy` makes another one.

    Attributes:
        readonly: executions must not write it
    """

    __slots__ = ('readonly', '_pending', '_shape', '_view', '_home')
    _noun = 'buffer'
    _instead = ': numpy.asarray(buffer) can'
    readonly: bool
    # Whether an execution that makes it may be going on, or what is done when that has ended.
    _pending: Union[bool, Job]
    _shape: Optional[Shape]
    _view: Any  # a weak reference to what NumPy's arrays in its memory keep
    _home: Optional[int]  # the address of its device, once that was asked for

    def __init__(self, address: int, readonly: bool = False, pending: bool = False,
                 shape: Optional[Shape] = None, home: Optional[int] = None) -> None:
        self._as_parameter_ = address
        self.readonly = readonly
        self._pending = pending
        self._shape = shape
        self._view = None
        self._home = home

    def __del__(self) -> None:
        try:
            _release(self._as_parameter_)
        except ctypes.ArgumentError:
            pass  # it is closed

    # --- Properties

    @property
    def shape(self) -> Shape:
        """Its sizes, as a tuple; also its element type and bytes."""
        if self._shape is None:
            self._shape = shape_of(lib.kiln_buffer_shape, self)
        return self._shape

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.shape.byte_size

    @property
    def device(self) -> Device:
        """Its device."""
        return Device.borrowed(lib.kiln_buffer_device(self))

    @property
    def ready(self) -> bool:
        """Whether the execution that defines it has ended."""
        if isinstance(self._pending, Job):
            return self._pending.ended
        return not self._pending or self.event().ready

    def event(self) -> Event:
        """An event that is ready when the value is."""
        return Event(made(lib.kiln_buffer_ready, self))

    def settle(self) -> None:
        """Waits for the value, and raises the error of the execution that defines it, if that
        failed."""
        if isinstance(self._pending, Job):
            self._pending.wait()
        elif self._pending:
            with self.event() as event:
                event.wait()
        self._pending = False

    def __repr__(self) -> str:
        if self.closed:
            return '<kiln.Buffer closed>'
        return '<kiln.Buffer {!r} on {}{}>'.format(self.shape, self.device.name,
                                                   '' if self.ready else ', pending')

    # --- Its memory

    @property
    def address(self) -> int:
        """The address of its elements, for reading; waits for them."""
        self.settle()
        place = ctypes.c_void_p()
        lib.kiln_buffer_data(self, ctypes.byref(place))
        return place.value or 0

    @property
    def device_address(self) -> int:
        """The address of its elements on the device, for reading by other work there; waits for
        them."""
        self.settle()
        place = ctypes.c_void_p()
        lib.kiln_buffer_device_data(self, ctypes.byref(place))
        return place.value or 0

    @property
    def is_shared(self) -> bool:
        """Whether NumPy's arrays use its memory. Such a buffer cannot be donated."""
        return self._view is not None and self._view() is not None

    def close(self) -> None:
        """Gives the buffer back. Where NumPy's arrays use its memory, nothing is done: it is given
        back with the last of them.
        """
        if not self.is_shared:
            super().close()

    def tobytes(self) -> bytes:
        """A copy of the elements, from any device; waits for them."""
        self.settle()
        size = self.shape.byte_size
        data = ctypes.create_string_buffer(size)
        lib.kiln_buffer_copy_to_host(self, data, size)
        return data.raw

    def to(self, device: Device) -> 'Buffer':
        """A copy on a device."""
        self.settle()
        return Buffer(made(lib.kiln_buffer_copy_to_device, self, device))

    def __copy__(self) -> 'Buffer':
        return self.to(self.device)

    def __deepcopy__(self, _memo: Any) -> 'Buffer':
        return self.to(self.device)

    # --- As an array of NumPy's

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self._array(copy is not False)
        return _numpy.converted(array, dtype, copy)

    def _array(self, may_copy: bool) -> Any:
        """The array in its memory; a copy if that is not the host's."""
        memory = None if self._view is None else self._view()
        if memory is None:
            try:
                memory = _numpy.Memory(self, self.address, self.shape, True)
            except KilnError as error:
                if error.code != Code.FAILED_PRECONDITION or not may_copy:
                    raise
                # A copy has its bytes.
                data = self.tobytes()
                address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
                return _numpy.array_of(_numpy.Memory(data, address, self.shape, True),
                                       self.shape.dtype)
            self._view = weakref.ref(memory)
        return _numpy.array_of(memory, self.shape.dtype)

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        """The buffer for another library, as that asks for it. The elements are there when this
        returns, whatever the stream; they must not be written.
        """
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError('the buffer is on {}: copy it first'.format(self.device.name))
        self.settle()
        return _dlpack.export(self.to(self.device) if copy else self, max_version)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """DLPack's type and number of its device."""
        return _dlpack.device_of(self.device)

    def tolist(self) -> Any:
        """Its elements as lists of Python numbers."""
        return self.__array__().tolist()

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self.size != 1:
            raise ValueError('{!r} has {} elements: only one is a number'.format(
                self.shape, self.size))
        code = _CODES.get(self.shape.dtype)
        if code is None:
            number = self.__array__(self.dtype.dtype).item()  # or says that NumPy lacks the type
            return number if isinstance(number, (int, float, complex)) else float(number)
        values = struct.unpack('=' + code, self.tobytes())
        return complex(*values) if len(values) == 2 else values[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in ('signed', 'unsigned'):
            raise TypeError('{!r} is no index: only a scalar integer is'.format(self.shape))
        return int(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError('a buffer without dimensions has no length')
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return self.__array__()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__array__())

    # An array is compared element by element; that buffers are not, unasked, would be a trap.
    def __eq__(self, other: object) -> Any:
        return operator.eq(self.__array__(), other)

    def __ne__(self, other: object) -> Any:
        return operator.ne(self.__array__(), other)

    def __lt__(self, other: Any) -> Any:
        return operator.lt(self.__array__(), other)

    def __le__(self, other: Any) -> Any:
        return operator.le(self.__array__(), other)

    def __gt__(self, other: Any) -> Any:
        return operator.gt(self.__array__(), other)

    def __ge__(self, other: Any) -> Any:
        return operator.ge(self.__array__(), other)

    __hash__ = object.__hash__


_release = lean('kiln_buffer_release')
# The types that Python's struct module has.
_CODES = {'pred': '?', 's8': 'b', 's16': 'h', 's32': 'i', 's64': 'q', 'u8': 'B', 'u16': 'H',
          'u32': 'I', 'u64': 'Q', 'f16': 'e', 'f32': 'f', 'f64': 'd', 'c64': 'ff', 'c128': 'dd',
          's4': 'b', 'u4': 'B', 's2': 'b', 'u2': 'B'}
