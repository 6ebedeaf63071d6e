"""Programs: graphs compiled as a whole, and graphs that run op by op."""

import ctypes
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _structs
from ._arrays import Shape, shape_of
from ._handle import Handle
from ._library import decoded, lib, made, options, text
from .device import Buffer, Device, Event

if TYPE_CHECKING:
    from .graph import Graph, Value


class ProgramInfo(NamedTuple):
    """What a program costs."""

    kernels: int
    temporary_bytes: int
    compile_microseconds: int


class ProgramMemory(NamedTuple):
    """The memory that an executable and a run of it take, in bytes."""

    code_bytes: int
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    scratch_bytes: int
    constant_bytes: int
    peak_bytes: int


class ProgramCost(NamedTuple):
    """What a run does, as XLA's cost analysis counts it."""

    flops: int
    transcendentals: int
    bytes_accessed: int


class Cancellation:
    """Ends executions that were given it, with the code CANCELLED, once it is set."""

    def __init__(self) -> None:
        self._flag = ctypes.c_int32(0)

    def set(self) -> None:
        """Asks for the end; any thread may."""
        self._flag.value = 1


def _info(struct: _structs.ProgramInfo) -> ProgramInfo:
    return ProgramInfo(*(getattr(struct, name) for name in ProgramInfo._fields))


def _execute_options(threads: int, cancel: Optional[Cancellation],
                     stream: Optional[int] = None) -> Any:
    fields: Dict[str, Any] = {'threads': threads, 'stream': stream}
    if cancel is not None:
        fields['cancel'] = ctypes.pointer(cancel._flag)
    return ctypes.byref(options(_structs.ExecuteOptions, lib.kiln_execute_options_init, **fields))


def _places(buffers: Sequence[Optional[Buffer]]) -> Any:
    """An array of addresses; NULL where there is no buffer."""
    return (ctypes.c_void_p * len(buffers))(
        *(None if b is None else b._as_parameter_ for b in buffers))


def _arguments(device: Device, arrays: Sequence[Any]) -> List[Buffer]:
    return [a if isinstance(a, Buffer) else device.borrow(a) for a in arrays]


class _Results:
    """The places of results: some given, the others to be filled in by the library."""

    def __init__(self, count: int, given: Optional[Sequence[Optional[Buffer]]]) -> None:
        self._given = [None] * count if given is None else list(given)
        if any(b is not None and b.readonly for b in self._given):
            raise ValueError('a result cannot be written into read-only memory')
        self.places = _places(self._given)
        self.count = len(self._given)

    def buffers(self) -> List[Buffer]:
        """The results, once the library has accepted the execution."""
        return [given if given is not None else Buffer(address)
                for given, address in zip(self._given, self.places)]


class Executable(Handle):
    """A graph compiled for a device (`Graph.compile`). Any number of threads may run it at once."""

    _noun = 'executable'

    @property
    def device(self) -> Device:
        """The device it was compiled for."""
        return Device.borrowed(lib.kiln_executable_device(self))

    @property
    def argument_shapes(self) -> List[Shape]:
        """What it takes."""
        return [shape_of(lib.kiln_executable_argument_shape, self, i)
                for i in range(lib.kiln_executable_argument_count(self))]

    @property
    def argument_names(self) -> List[str]:
        """The names of what it takes."""
        return [decoded(lib.kiln_executable_argument_name, self, i) or ''
                for i in range(lib.kiln_executable_argument_count(self))]

    @property
    def result_shapes(self) -> List[Shape]:
        """What it gives."""
        return [shape_of(lib.kiln_executable_result_shape, self, i)
                for i in range(lib.kiln_executable_result_count(self))]

    @property
    def info(self) -> ProgramInfo:
        """What it costs."""
        struct = _structs.ProgramInfo()
        lib.kiln_executable_info(self, ctypes.byref(struct))
        return _info(struct)

    @property
    def memory(self) -> ProgramMemory:
        """The memory that it takes."""
        struct = _structs.ProgramMemory()
        lib.kiln_executable_memory(self, ctypes.byref(struct))
        return ProgramMemory(*(getattr(struct, name) for name in ProgramMemory._fields))

    @property
    def cost(self) -> ProgramCost:
        """What a run does."""
        struct = _structs.ProgramCost()
        lib.kiln_executable_cost(self, ctypes.byref(struct))
        return ProgramCost(*(getattr(struct, name) for name in ProgramCost._fields))

    def __call__(self, *arguments: Any) -> List[Buffer]:
        """`run` with the defaults."""
        return self.run(arguments)

    def run(self, arguments: Sequence[Any], results: Optional[Sequence[Optional[Buffer]]] = None,
            threads: int = 0, cancel: Optional[Cancellation] = None,
            stream: Optional[int] = None) -> List[Buffer]:
        """Executes, and returns when the results are there.

        Args:
            arguments: buffers, or arrays, which are borrowed (`Device.borrow`)
            results: for each result a buffer to write it into, or None for a new one
            threads: how many to use at most; 0: as many as the context has
            cancel: what may end the execution
            stream: the address of a CUstream in whose order it is done, on a GPU
        """
        buffers = _arguments(self.device, arguments)
        made_results = _Results(lib.kiln_executable_result_count(self), results)
        lib.kiln_executable_run(self, _execute_options(threads, cancel, stream), _places(buffers),
                                len(buffers), made_results.places, made_results.count)
        return made_results.buffers()

    def start(self, arguments: Sequence[Any],
              results: Optional[Sequence[Optional[Buffer]]] = None,
              threads: int = 0, stream: Optional[int] = None) -> Tuple[List[Buffer], Event]:
        """Executes, and may return before the results are there. They can be used at once, as
        arguments too; what needs their values waits for them. On a `stream`, as in `run`, the
        execution has its place when this returns.

        Returns:
            the results, and an event that is ready when the execution has ended
        """
        buffers = _arguments(self.device, arguments)
        made_results = _Results(lib.kiln_executable_result_count(self), results)
        # One device's list of each.
        given = (ctypes.POINTER(ctypes.c_void_p) * 1)(_pointer(_places(buffers)))
        wanted = (ctypes.POINTER(ctypes.c_void_p) * 1)(_pointer(made_results.places))
        event = made(lib.kiln_executable_execute, self, _execute_options(threads, None, stream), given,
                     len(buffers), wanted, made_results.count, 1)
        return made_results.buffers(), Event(event)


def _pointer(array: Any) -> Any:
    return ctypes.cast(array, ctypes.POINTER(ctypes.c_void_p))


class Session(Handle):
    """A graph that runs with feeds and fetches, one op at a time, on a device. Any number of
    threads may run it at once.
    """

    _noun = 'session'

    def __init__(self, graph: 'Graph', device: Optional[Device] = None) -> None:
        fields = {} if device is None else {'device': device._as_parameter_}
        made_options = options(_structs.SessionOptions, lib.kiln_session_options_init, **fields)
        super().__init__(made(lib.kiln_session_create, graph, ctypes.byref(made_options)))
        self.device = graph.context.device('CPU:0') if device is None else device

    def prepare(self, feeds: Sequence['Value'], fetches: Sequence['Value']) -> ProgramInfo:
        """Compiles what a run with these feeds and fetches needs, and tells what it costs."""
        struct = _structs.ProgramInfo()
        lib.kiln_session_prepare(self, *_values(feeds), *_values(fetches), ctypes.byref(struct))
        return _info(struct)

    def run(self, feeds: Mapping['Value', Any], fetches: Sequence['Value'],
            results: Optional[Sequence[Optional[Buffer]]] = None, threads: int = 0,
            cancel: Optional[Cancellation] = None) -> List[Buffer]:
        """Computes `fetches` from `feeds`, and returns when they are there.

        Args:
            feeds: for values of the graph a buffer, or an array, which is borrowed
            fetches: values of the graph
            results: for each fetch a buffer to write it into, or None for a new one
            threads: how many to use at most; 0: as many as the context has
            cancel: what may end the execution
        """
        buffers = _arguments(self.device, list(feeds.values()))
        made_results = _Results(len(fetches), results)
        if made_results.count != len(fetches):
            raise ValueError('there must be as many results as fetches')
        ids, count = _values(list(feeds))
        lib.kiln_session_run(self, _execute_options(threads, cancel), ids, _places(buffers), count,
                             _values(fetches)[0], made_results.places, made_results.count)
        return made_results.buffers()


def _values(values: Sequence['Value']) -> Tuple[ctypes.Array, int]:
    return (ctypes.c_uint64 * len(values))(*(v.id for v in values)), len(values)


_OPTIMIZATIONS = ('auto', 'quick', 'full')


def compile_graph(graph: 'Graph', device: Optional[Device], symbols: Mapping[str, int],
                  disabled_passes: Sequence[str], verify: bool,
                  dump_folder: Optional[str], optimization: str,
                  allow_tf32: bool) -> Executable:
    """`Graph.compile`."""
    sizes = [_structs.SymbolSize(*text(name), size) for name, size in symbols.items()]
    if optimization not in _OPTIMIZATIONS:
        raise ValueError(f'optimization is {optimization!r}, not one of {_OPTIMIZATIONS}')
    fields: Dict[str, Any] = {'verify': int(verify),
                              'optimization': _OPTIMIZATIONS.index(optimization),
                              'allow_tf32': int(allow_tf32)}
    if device is not None:
        fields['device'] = device._as_parameter_
    if sizes:
        fields['symbols'] = (_structs.SymbolSize * len(sizes))(*sizes)
        fields['symbol_count'] = len(sizes)
    if disabled_passes:
        fields['disabled_passes'], fields['disabled_passes_length'] = text(
            ','.join(disabled_passes))
    if dump_folder is not None:
        fields['dump_folder'], fields['dump_folder_length'] = text(dump_folder)
    made_options = options(_structs.CompileOptions, lib.kiln_compile_options_init, **fields)
    return Executable(made(lib.kiln_graph_compile, graph, ctypes.byref(made_options)))
