"""The context, and timelines of what it does."""

import ctypes
from typing import Any, Callable, Dict, List, Optional

from . import _structs
from ._handle import Handle, drop, forget, held, hold
from ._library import KilnError, decoded, lib, made, made_text, options, text
from ._table import GPU_LIBRARIES, GPU_MODES, LOG_LEVELS
from .device import Device, MemoryInfo, memory_info
from .graph import Graph


class Trace(Handle):
    """A recording of what a context does; ends with its `with` block or with `stop`."""

    _noun = 'trace'

    def stop(self) -> None:
        """Ends the recording."""
        lib.kiln_trace_stop(self)

    def to_json(self) -> str:
        """What was recorded, in Chrome's trace event format."""
        return made_text(lib.kiln_trace_to_json, self)

    def __exit__(self, *_exception: Any) -> None:
        self.stop()


_LEVEL_NAMES = {number: name for name, number in LOG_LEVELS.items()}


@_structs.LogFunction
def _call_log(number: int, level: int, message: int, length: int) -> None:
    held(number)(_LEVEL_NAMES.get(level, str(level)),
                 ctypes.string_at(message, length).decode('utf-8', 'replace'))


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
        cache_folder: where code that a driver has assembled, and what was measured of a
            library, is kept for other processes
        gpu_library: 'AUTO', 'NEVER' or 'ALWAYS': when products of matrices go by cuBLASLt;
            'DEFAULT': as the environment variable KILN_GPU_LIBRARY says
    """

    _noun = 'context'

    def __init__(self, threads: int = 0, callbacks_from_any_thread: bool = False,
                 log: Optional[Callable[[str, str], None]] = None,
                 log_level: str = 'DEFAULT', gpu: str = 'AUTO', gpu_memory_bytes: int = 0,
                 cache_folder: Optional[str] = None, gpu_library: str = 'DEFAULT') -> None:
        fields: Dict[str, Any] = {'threads': threads,
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
            fields.update(log=_call_log, log_user_data=number, log_destroy=forget)
        made_options = options(_structs.ContextOptions, lib.kiln_context_options_init, **fields)
        try:
            address = made(lib.kiln_context_create, ctypes.byref(made_options))
        except KilnError:
            drop(number)
            raise
        super().__init__(address)

    @property
    def threads(self) -> int:
        """Threads that run kernels, the caller's included."""
        return lib.kiln_context_threads(self)

    @property
    def memory(self) -> MemoryInfo:
        """What its allocator has given out."""
        return memory_info(lib.kiln_context_memory, self)

    @property
    def devices(self) -> List[Device]:
        """The devices that there are."""
        return [Device.borrowed(lib.kiln_context_device(self, i))
                for i in range(lib.kiln_context_device_count(self))]

    @property
    def device_notes(self) -> str:
        """Why GPUs are not there that one might expect, a line each."""
        return decoded(lib.kiln_context_device_notes, self) or ''

    def device(self, name: str = 'CPU:0') -> Device:
        """A device by name: 'CPU:0', 'CPU', or TensorFlow's long form."""
        return Device.borrowed(made(lib.kiln_context_find_device, self, *text(name)))

    def graph(self, name: str = '') -> Graph:
        """Begins an empty graph."""
        return Graph(self, made(lib.kiln_graph_create, self, *text(name)))

    def graph_from_hlo_text(self, hlo: str) -> Graph:
        """Reads a module in HLO text, the form in which XLA and Kiln print it."""
        return Graph(self, made(lib.kiln_graph_from_hlo_text, self, *text(hlo)))

    def trace(self) -> Trace:
        """Begins to record what the context does: `with context.trace() as trace: ...`"""
        return Trace(made(lib.kiln_trace_start, self))
