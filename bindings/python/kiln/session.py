"""Sessions and functions: graphs whose ops are placed on devices and compiled in clusters."""

import ctypes
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _structs
from ._calls import with_causes
from ._handle import Handle
from ._interrupt import interruptible
from ._library import decoded, lib, made, made_text, options, text
from .device import Buffer, Cancellation, Device
from .executable import ProgramInfo, _execute_options, _info, _places, _Results

if TYPE_CHECKING:
    from .context import Trace
    from .graph import Graph
    from .value import Value

_JIT_LEVELS = {'explicit': 0, 'on': 1, 'off': 2}


class Session(Handle):
    """A graph run with feeds and fetches. Ops are on the devices of their marks (`Graph.device`),
    clusters of them are compiled, by the level `jit` and by marks (`Graph.jit_scope`), and the
    others run one by one. Any number of threads may run it at once.
    """

    __slots__ = ('device', '_stays')
    _noun = 'session'

    def __init__(self, graph: 'Graph', device: Optional[Device] = None, jit: str = 'explicit',
                 soft_placement: bool = False, min_cluster_size: int = 0,
                 max_cluster_size: int = 0, cluster_fuel: Optional[int] = None,
                 ops_to_cluster: Sequence[str] = (), cluster_exclude_ops: Sequence[str] = (),
                 cpu_clustering: bool = True, lazy: bool = False,
                 asynchronous_compilation: bool = False, strict: bool = False,
                 memory_limit_bytes: int = 0) -> None:
        """
        Args:
            graph: is copied
            device: of ops without a mark; None: CPU:0
            jit: 'explicit' compiles marked ops, 'on' all ops, 'off' none
            soft_placement: whether ops on missing devices move to others
            min_cluster_size: with 'on', the effective size that a cluster needs; 0: 4
            max_cluster_size: most ops of a cluster; 0: no limit
            cluster_fuel: number of ops that may be in clusters; None: no limit
            ops_to_cluster: the opcodes that may be in clusters; none: all
            cluster_exclude_ops: the opcodes that may not
            cpu_clustering: whether 'on' includes CPU devices
            lazy: whether clusters of varying sizes are compiled at the second request of new sizes
            asynchronous_compilation: whether clusters run op by op until they are compiled
            strict: whether each cluster is compiled, or the run fails; not with either of these
            memory_limit_bytes: of each cluster, as for `Graph.compile`
        """
        if jit not in _JIT_LEVELS:
            raise ValueError(f'jit is {jit!r}, not one of {tuple(_JIT_LEVELS)}')
        allowed, allowed_length = text(','.join(ops_to_cluster))
        excluded, excluded_length = text(','.join(cluster_exclude_ops))
        fields: Dict[str, Any] = {} if device is None else {'device': device._as_parameter_}
        fields.update(jit=_JIT_LEVELS[jit], soft_placement=int(soft_placement),
                      min_cluster_size=min_cluster_size, max_cluster_size=max_cluster_size,
                      cluster_fuel=0 if cluster_fuel is None else cluster_fuel + 1,
                      ops_to_cluster=allowed, ops_to_cluster_length=allowed_length,
                      cluster_exclude_ops=excluded, cluster_exclude_ops_length=excluded_length,
                      no_cpu_clustering=int(not cpu_clustering), lazy=int(lazy),
                      asynchronous_compilation=int(asynchronous_compilation), strict=int(strict),
                      memory_limit_bytes=memory_limit_bytes)
        made_options = options(_structs.SessionOptions, lib.kiln_session_options_init, **fields)
        super().__init__(made(lib.kiln_session_create, graph, ctypes.byref(made_options)))
        self.device = graph.context.device('CPU:0') if device is None else device
        self._stays = graph.context.calls_python

    def __repr__(self) -> str:
        return '<kiln.Session {}>'.format('closed' if self.closed else 'on ' + self.device.name)

    def explain(self, feeds: Sequence['Value'], fetches: Sequence['Value'],
                targets: Sequence['Value'] = ()) -> str:
        """For each op of a run a line with its device and its cluster, or why it is in none."""
        return made_text(lib.kiln_session_explain, self, *_values(feeds), *_values(fetches),
                         *_values(targets))

    def to_dot(self, feeds: Sequence['Value'], fetches: Sequence['Value'],
               targets: Sequence['Value'] = ()) -> str:
        """The ops of a run in Graphviz's language, with devices and clusters."""
        return made_text(lib.kiln_session_to_dot, self, *_values(feeds), *_values(fetches),
                         *_values(targets))

    def prepare(self, feeds: Sequence['Value'], fetches: Sequence['Value'],
                targets: Sequence['Value'] = ()) -> ProgramInfo:
        """Places and compiles a run with these feeds, fetches and targets, and returns its cost.
        After Ctrl-C that goes on in the background.
        """
        struct = _structs.ProgramInfo()
        lists = *_values(feeds), *_values(fetches), *_values(targets)

        def prepare() -> None:
            lib.kiln_session_prepare(self, *lists, ctypes.byref(struct))

        interruptible(prepare, _nothing)
        return _info(struct)

    def run(self, feeds: Mapping['Value', Any], fetches: Sequence['Value'],
            results: Optional[Sequence[Optional[Buffer]]] = None, threads: int = 0,
            cancel: Optional[Cancellation] = None, timeout: Optional[float] = None,
            targets: Sequence['Value'] = (), trace: Optional['Trace'] = None) -> List[Buffer]:
        """Computes `fetches` and `targets` from `feeds`, and returns when they are ready.

        Args:
            feeds: for values of the graph a buffer, or a borrowed array
            fetches: values of the graph
            results: for each fetch a buffer to write it into, or None for a new one
            threads: how many to use at most; 0: as many as the context has
            cancel: the means to cancel the execution
            timeout: the time limit in seconds
            targets: values of the graph, of any shape, computed for their side effects
            trace: records this run (`Context.run_trace`)
        """
        buffers = [self.device._argument(array, value.shape.dtype)
                   for value, array in feeds.items()]
        for buffer in buffers + [r for r in results or () if r is not None]:
            buffer.settle()
        made_results = _Results(len(fetches), results)
        if made_results.count != len(fetches):
            raise ValueError('there must be as many results as fetches')
        ids, count = _values(list(feeds))
        flag = Cancellation() if cancel is None else cancel
        struct = _execute_options(threads, flag, timeout=timeout, trace=trace)

        def execute() -> List[Buffer]:
            lib.kiln_session_run(self, ctypes.byref(struct), ids, _places(buffers), count,
                                 _values(fetches)[0], made_results.places, made_results.count,
                                 *_values(targets))
            return made_results.buffers()

        if self._stays:
            return with_causes(execute)
        return interruptible(lambda: with_causes(execute), flag.set, made_results.leave)

    @property
    def variables(self) -> List[str]:
        """The names of the graph's variables, in order."""
        return [decoded(lib.kiln_session_variable_name, self, i) or ''
                for i in range(lib.kiln_session_variable_count(self))]

    def variable(self, name: str) -> Buffer:
        """The value of a variable, which later assignments do not change."""
        return Buffer(made(lib.kiln_session_variable, self, *text(name)), True)

    def set_variable(self, name: str, value: Any) -> None:
        """Sets a variable to a copy of a buffer or an array."""
        buffer = value if isinstance(value, Buffer) else self.device.copy(value)
        lib.kiln_session_set_variable(self, *text(name), buffer)

    def save(self, path: str) -> None:
        """Writes all variables to a safetensors file, which replaces an old one at its end."""
        lib.kiln_session_save(self, *text(path))

    def restore(self, path: str) -> None:
        """Sets all variables from a safetensors file, or none if one of them does not fit."""
        lib.kiln_session_restore(self, *text(path))


class FunctionInfo(NamedTuple):
    """The work of a function so far."""

    calls: int
    """runs of clusters and op-by-op parts, together"""
    compiles: int
    """programs made"""
    fallbacks: int
    """runs of clusters op by op, as their sizes were not compiled yet"""
    evictions: int
    """programs dropped beyond `max_programs`"""
    programs: int
    """programs kept now"""


class Function(Handle):
    """A graph called with arguments of any shapes that fit its symbols: programs are made for the
    sizes that occur, and kept. Any number of threads may call one at once.
    """

    __slots__ = ('device', '_result_count', '_parameters', '_stays')
    _noun = 'function'

    def __init__(self, graph: 'Graph', device: Optional[Device] = None,
                 must_compile: bool = False, lazy: bool = False, max_programs: int = 0,
                 asynchronous_compilation: bool = False) -> None:
        """
        Args:
            graph: is copied
            device: of ops without a mark; None: CPU:0
            must_compile: whether the graph is compiled as a whole, or fails
            lazy: whether new sizes are compiled at their second call only
            max_programs: the most programs kept of each cluster; 0: 64
            asynchronous_compilation: whether clusters run op by op until they are compiled
        """
        fields: Dict[str, Any] = {} if device is None else {'device': device._as_parameter_}
        fields.update(must_compile=int(must_compile), lazy=int(lazy), max_programs=max_programs,
                      asynchronous_compilation=int(asynchronous_compilation))
        made_options = options(_structs.FunctionOptions, lib.kiln_function_options_init, **fields)
        # What is compiled when Ctrl-C comes is left to end by itself.
        super().__init__(interruptible(
            lambda: made(lib.kiln_function_create, graph, ctypes.byref(made_options)), _nothing))
        self.device = graph.context.device('CPU:0') if device is None else device
        self._result_count: int = lib.kiln_function_result_count(self)
        self._parameters = [value.shape.dtype for value in graph.parameters]
        self._stays = graph.context.calls_python

    @property
    def info(self) -> FunctionInfo:
        struct = _structs.FunctionInfo()
        lib.kiln_function_statistics(self, ctypes.byref(struct))
        return FunctionInfo(struct.calls, struct.compiles, struct.fallbacks, struct.evictions,
                            struct.programs)

    def __call__(self, *arguments: Any) -> List[Buffer]:
        """As `run`, with new buffers for the results."""
        return self.run(arguments)

    def run(self, arguments: Sequence[Any], results: Optional[Sequence[Optional[Buffer]]] = None,
            threads: int = 0, cancel: Optional[Cancellation] = None,
            timeout: Optional[float] = None, trace: Optional['Trace'] = None) -> List[Buffer]:
        """Calls the function, and returns when the results are ready.

        Args:
            arguments: for each parameter a buffer, or a borrowed array
            results: for each result a buffer to write it into, or None for a new one
            threads: how many to use at most; 0: as many as the context has
            cancel: the means to cancel the execution
            timeout: the time limit in seconds
            trace: records this run (`Context.run_trace`)
        """
        if len(arguments) != len(self._parameters):
            raise ValueError(f'{len(arguments)} arguments are given; '
                             f'expected {len(self._parameters)}')
        buffers = [self.device._argument(array, dtype)
                   for array, dtype in zip(arguments, self._parameters)]
        for buffer in buffers + [r for r in results or () if r is not None]:
            buffer.settle()
        made_results = _Results(self._result_count, results)
        flag = Cancellation() if cancel is None else cancel
        struct = _execute_options(threads, flag, timeout=timeout, trace=trace)

        def execute() -> List[Buffer]:
            lib.kiln_function_call(self, ctypes.byref(struct), _places(buffers), len(buffers),
                                   made_results.places, made_results.count)
            return made_results.buffers()

        if self._stays:
            return with_causes(execute)
        return interruptible(lambda: with_causes(execute), flag.set, made_results.leave)


def _nothing() -> None:
    """The cancellation of work that has none."""


def _values(values: Sequence['Value']) -> 'Tuple[ctypes.Array[Any], int]':
    return (ctypes.c_uint64 * len(values))(*(v.id for v in values)), len(values)
