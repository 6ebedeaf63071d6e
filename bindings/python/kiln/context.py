"""The context, and timelines of its work."""

import ctypes
import os
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _structs
from ._dtypes import DTypeLike, dtype_number
from ._calls import CustomCall, call_held
from ._handle import Handle, drop, forget, held, hold
from ._interrupt import interruptible
from ._library import (KilnError, Path, decoded, ints, lib, made, made_bytes, made_text, options,
                       path_text, text)
from ._table import GPU_LIBRARIES, GPU_MODES, LOG_LEVELS
from .device import Cancellation, Device, MemoryInfo, memory_info
from .executable import Executable
from .graph import Graph


class OpMetadata(NamedTuple):
    """The work of one op on one device."""

    op: str
    """its name; the names of the ops of a fused kernel; an executable; or 'CPU:0 to GPU:0'"""
    device: str
    kind: str
    """'kernel', 'call', 'host', 'transfer', 'copy', or 'execute'"""
    occurrences: int
    nanoseconds: int
    bytes: int
    flops: int


class DiskCacheInfo(NamedTuple):
    """The uses of a context's disk cache since it was made."""

    hits: int
    """programs loaded in the place of a compilation"""
    misses: int
    written: int
    """entries added"""
    evicted: int
    """entries removed for the bound"""
    failed: int
    """entries that were damaged, or could not be read or added"""
    read_bytes: int
    written_bytes: int
    folder_bytes: int
    """of all entries in the folder now, of all processes"""
    limit_bytes: int
    """the bound on them; 0: there is no disk cache"""


class Trace(Handle):
    """A recording of a context's work, which ends with its `with` block or with `stop`; or of
    single runs.
    """

    __slots__ = ()
    _noun = 'trace'

    def stop(self) -> None:
        """Ends the recording."""
        lib.kiln_trace_stop(self)

    def to_json(self) -> str:
        """The recording, in Chrome's trace event format."""
        return made_text(lib.kiln_trace_to_json, self)

    def to_xspace(self) -> bytes:
        """The recording, as the protocol buffer of XLA's profiler, for TensorBoard and XProf."""
        return made_bytes(lib.kiln_trace_to_xspace, self)

    def metadata(self) -> List[OpMetadata]:
        """The sums of the recording by op and device, the most time first."""
        rows = []
        with _RunMetadata(made(lib.kiln_trace_metadata, self)) as sums:
            for index in range(lib.kiln_run_metadata_count(sums)):
                row = _structs.OpMetadata()
                lib.kiln_run_metadata_get(sums, index, ctypes.byref(row))
                rows.append(OpMetadata(row.op.decode(), row.device.decode(), row.kind.decode(),
                                       row.count, row.nanoseconds, row.bytes, row.flops))
        return rows

    def __exit__(self, *_exception: Any) -> None:
        self.stop()


class _RunMetadata(Handle):
    __slots__ = ()
    _noun = 'run_metadata'


_LEVEL_NAMES = {number: name for name, number in LOG_LEVELS.items()}


def _call_log(number: int, level: int, message: int, length: int) -> None:
    held(number)(_LEVEL_NAMES.get(level, str(level)),
                 ctypes.string_at(message, length).decode('utf-8', 'replace'))


_log_function = _structs.LogFunction(_call_log)


class Context(Handle):
    """All of the library's state: threads, devices and caches.

    Args:
        threads: threads that run kernels, the caller's included; 0: as many as the process may use
        callbacks_from_any_thread: the library's threads may call Python
        log: called with the level's name and the message; None: messages go to standard error
        log_level: messages below it are dropped: INFO, WARNING, ERROR or OFF
        gpu: which GPUs there are: 'AUTO' for those of the CUDA driver (or an emulated one, where
            the environment variable KILN_EMULATE_GPU is set), 'EMULATED' or 'OFF'
        gpu_memory_bytes: the most that may be taken of a GPU's memory; 0: all that it has
        cache_folder: the folder of the disk cache, where compiled programs, code that a driver has
            assembled, and what was measured of a library are kept for other processes; None: as
            the environment variable KILN_CACHE says
        gpu_library: 'AUTO', 'NEVER' or 'ALWAYS': when products of matrices go by cuBLASLt;
            'DEFAULT': as the environment variable KILN_GPU_LIBRARY says
        cpu_devices: how many devices the processor is, 'CPU:0', 'CPU:1' and so on, with a share of
            the threads each; 0: as the environment variable KILN_CPU_DEVICES says, else 1
        cache_bytes: the most bytes of all entries of the disk cache together; 0: 1 GiB, or as the
            environment says; -1: no disk cache
    """

    __slots__ = ('calls_python', '_lets_any_thread_call')
    _noun = 'context'
    # Whether programs may call functions of Python's, which only the thread that runs them may do.
    calls_python: bool

    def __init__(self, threads: int = 0, callbacks_from_any_thread: bool = False,
                 log: Optional[Callable[[str, str], None]] = None,
                 log_level: str = 'DEFAULT', gpu: str = 'AUTO', gpu_memory_bytes: int = 0,
                 cache_folder: Optional[str] = None, gpu_library: str = 'DEFAULT',
                 cpu_devices: int = 0, cache_bytes: int = 0) -> None:
        fields: Dict[str, Any] = {'threads': threads, 'cpu_devices': cpu_devices,
                                  'cache_bytes': cache_bytes,
                                  'callbacks_from_any_thread': int(callbacks_from_any_thread),
                                  'log_level': LOG_LEVELS[log_level.upper()],
                                  'gpu': GPU_MODES[gpu.upper()],
                                  'gpu_memory_bytes': gpu_memory_bytes,
                                  'gpu_library': GPU_LIBRARIES[gpu_library.upper()]}
        if cache_folder is not None:
            fields['cache_folder'], fields['cache_folder_length'] = text(cache_folder)
        number = 0
        if log is not None:
            number = hold(log)
            fields.update(log=_log_function, log_user_data=number, log_destroy=forget)
        made_options = options(_structs.ContextOptions, lib.kiln_context_options_init, **fields)
        try:
            address = made(lib.kiln_context_create, ctypes.byref(made_options))
        except KilnError:
            drop(number)
            raise
        super().__init__(address)
        self._lets_any_thread_call = callbacks_from_any_thread
        self.calls_python = False

    def __repr__(self) -> str:
        if self.closed:
            return '<kiln.Context closed>'
        return '<kiln.Context {}, {} threads>'.format(
            ', '.join(device.name for device in self.devices), self.threads)

    @property
    def threads(self) -> int:
        """Threads that run kernels, the caller's included."""
        return int(lib.kiln_context_threads(self))

    @property
    def memory(self) -> MemoryInfo:
        """The use of its allocator's memory."""
        return memory_info(lib.kiln_context_memory, self)

    @property
    def disk_cache(self) -> DiskCacheInfo:
        """The uses of its disk cache; all 0 without one."""
        told = _structs.CacheInfo()
        lib.kiln_context_cache(self, ctypes.byref(told))
        return DiskCacheInfo(*(getattr(told, name) for name in DiskCacheInfo._fields))

    @property
    def devices(self) -> List[Device]:
        """The devices."""
        return [Device.borrowed(lib.kiln_context_device(self, i))
                for i in range(lib.kiln_context_device_count(self))]

    @property
    def device_notes(self) -> str:
        """The reasons for missing GPUs, a line each."""
        return decoded(lib.kiln_context_device_notes, self) or ''

    def device(self, name: str = 'CPU:0') -> Device:
        """A device by name: 'CPU:0', 'CPU', or TensorFlow's long form."""
        return Device.borrowed(made(lib.kiln_context_find_device, self, *text(name)))

    def register_call(self, target: str, function: Callable[[CustomCall], None]) -> None:
        """Registers the function that custom calls of a target run, in programs compiled from then
        on. It gets a `CustomCall`, reads its operands and fills in its results:

            def double(call):
                numpy.asarray(call.results[0])[...] = 2 * numpy.asarray(call.operands[0])

        An exception is the failure of the execution. Threads of the library's call it only where
        the context was made with `callbacks_from_any_thread`.
        """
        number = hold(function)
        try:
            lib.kiln_context_register_call(self, *text(target), call_held, number, forget)
        except KilnError:
            drop(number)
            raise
        self.calls_python = not self._lets_any_thread_call

    def graph(self, name: str = '') -> Graph:
        """Begins an empty graph."""
        return Graph(self, made(lib.kiln_graph_create, self, *text(name)))

    def graph_from_hlo_text(self, hlo: str) -> Graph:
        """Reads a module in HLO text, as printed by XLA and Kiln."""
        return Graph(self, made(lib.kiln_graph_from_hlo_text, self, *text(hlo)))

    def graph_from_stablehlo(self, program: Union[str, bytes], entry: str = '',
                             arguments: Optional[Sequence[Tuple[DTypeLike, Sequence[int]]]] = None,
                             cancel: Optional[Cancellation] = None,
                             timeout: Optional[float] = None) -> Graph:
        """Reads a program in StableHLO: text, or portable bytecode as `bytes`. Ctrl-C cancels it.

        Args:
            entry: the name of the function that is the graph: `main`, or else the only public one
            arguments: element type and sizes of each parameter, where the program leaves sizes open
            cancel: what may end reading
            timeout: how many seconds it may take
        """
        data = program.encode() if isinstance(program, str) else program
        name, name_length = text(entry)
        flag = Cancellation() if cancel is None else cancel
        fields: Dict[str, Any] = {
            'entry': name, 'entry_length': name_length, 'cancel': ctypes.pointer(flag._flag),
            'timeout_ns': 0 if timeout is None else max(1, int(timeout * 1e9))}
        if arguments is not None:
            shapes = (_structs.Shape * len(arguments))()
            for shape, (dtype, dims) in zip(shapes, arguments):
                shape.struct_size = ctypes.sizeof(_structs.Shape)
                shape.dtype = dtype_number(dtype)
                shape.dims, shape.rank = ints(dims)
            pointers = (ctypes.POINTER(_structs.Shape) * len(shapes))(
                *(ctypes.pointer(shape) for shape in shapes))
            fields.update(arguments=pointers, argument_count=len(shapes))
        made_options = options(_structs.StablehloOptions, lib.kiln_stablehlo_options_init,
                               **fields)
        return interruptible(
            lambda: Graph(self, made(lib.kiln_graph_from_stablehlo, self, data, len(data),
                                     ctypes.byref(made_options))), flag.set)

    def load(self, path: Path, device: Optional[Device] = None) -> Executable:
        """An executable from a file of `Executable.save`, without a compilation. The file is mapped:
        it may be replaced while the executable is in use, but must not be changed in its place. A
        file from an untrusted source is code of that source.

        Args:
            path: the file
            device: one of the kind for which it was compiled; None: CPU:0

        Raises:
            KilnError: with the code INVALID_ARGUMENT for a file that is no saved executable or is
                damaged; FAILED_PRECONDITION if it was saved by another version or for another
                machine; NOT_FOUND if it calls a function that is not registered
        """
        on = self.device() if device is None else device
        return Executable(made(lib.kiln_executable_load_file, on, *path_text(path)),
                          self.calls_python)

    def deserialize(self, data: bytes, device: Optional[Device] = None) -> Executable:
        """An executable from the bytes of `Executable.serialize`, as `load`."""
        on = self.device() if device is None else device
        return Executable(made(lib.kiln_executable_load, on, data, len(data)), self.calls_python)

    def trace(self) -> Trace:
        """Begins to record the context's work: `with context.trace() as trace: ...`"""
        return Trace(made(lib.kiln_trace_start, self))

    def run_trace(self) -> Trace:
        """A trace of single runs, those that name it: `session.run(..., trace=trace)`"""
        return Trace(made(lib.kiln_trace_create, self))

_default: Optional[Context] = None
_default_lock = threading.Lock()


def default_context() -> Context:
    """The context of functions of `kiln.jit` that are given none. It is made when it is first
    needed, and again after it was closed; a child of fork() has its own.
    """
    global _default
    found = _default
    if found is None or found.closed:
        with _default_lock:
            found = _default
            if found is None or found.closed:
                found = _default = Context()
    return found


def _after_fork() -> None:
    global _default, _default_lock
    _default = None  # its threads are the parent's
    _default_lock = threading.Lock()  # another thread may have held it


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_after_fork)
