"""Programs: graphs compiled as a whole."""

import atexit
import collections
import ctypes
import time
from typing import (TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
                    Union)

from . import _structs
from ._arrays import Shape, shape_of
from ._calls import with_causes
from ._handle import Handle
from ._interrupt import Job, interruptible
from ._lend import Lender
from ._library import (Path, decoded, lean, lib, made, made_bytes, made_text, options, path_text,
                       raise_error, text)
from .device import Buffer, Cancellation, Device, Event

if TYPE_CHECKING:
    from .context import Trace
    from .graph import Graph
    from .value import Value

Donation = Union[bool, Sequence[int]]


class ProgramInfo(NamedTuple):
    """The cost of a program."""

    kernels: int
    temporary_bytes: int
    compile_microseconds: int


class ProgramMemory(NamedTuple):
    """The memory of an executable and of a run, in bytes."""

    code_bytes: int
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    scratch_bytes: int
    constant_bytes: int
    peak_bytes: int
    frozen_bytes: int


class ProgramCost(NamedTuple):
    """The work of a run, by the definitions of XLA's cost analysis. It is `partial` if there are
    loops, which count once, or custom calls, whose work is unknown.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    partial: bool


def _info(struct: _structs.ProgramInfo) -> ProgramInfo:
    return ProgramInfo(*(getattr(struct, name) for name in ProgramInfo._fields))


_DEFAULTS = options(_structs.ExecuteOptions, lib.kiln_execute_options_init)


def _execute_options(threads: int, cancel: Optional[Cancellation], stream: Optional[int] = None,
                     donate: Donation = False, timeout: Optional[float] = None,
                     trace: Optional['Trace'] = None) -> Any:
    struct = _structs.ExecuteOptions.from_buffer_copy(_DEFAULTS)
    if trace is not None:
        struct.trace = trace._as_parameter_
    if timeout is not None:
        struct.timeout_ns = max(1, round(timeout * 1e9))
    struct.threads, struct.stream, struct.donate_aliased = threads, stream, int(donate is True)
    if cancel is not None:
        struct.cancel = ctypes.pointer(cancel._flag)
    if not isinstance(donate, bool):
        numbers = list(donate)
        struct.donated = (ctypes.c_size_t * len(numbers))(*numbers)
        struct.donated_count = len(numbers)
    return struct


def _places(buffers: Sequence[Optional[Buffer]]) -> Any:
    """An array of addresses; NULL for no buffer."""
    return (ctypes.c_void_p * len(buffers))(
        *(None if b is None else b._as_parameter_ for b in buffers))


class _Results:
    """The places of results: some given, the others to be filled in by the library."""

    def __init__(self, count: int, given: Optional[Sequence[Optional[Buffer]]]) -> None:
        self._given: List[Optional[Buffer]] = [None] * count
        if given is not None:
            self._given = list(given)
        for buffer in self._given:
            if buffer is not None and buffer.readonly:
                raise ValueError('a result cannot be written into read-only memory')
        self.places = _places(self._given)
        self.count = len(self._given)

    def leave(self, job: Job) -> None:
        """An interrupted execution may still write its buffers."""
        for given in self._given:
            if given is not None:
                given._pending = job

    def buffers(self, pending: bool = False) -> List[Buffer]:
        """The results, once the library has accepted the execution."""
        for given in self._given:
            if given is not None and pending:
                given._pending = True
        return [given if given is not None else Buffer(address, False, pending)
                for given, address in zip(self._given, self.places)]


# Seconds of one slow core. Shorter work is not handed to a second thread: where the processors sleep
# that takes half a millisecond.
_BRIEF = 0.3


# Arrays for the arguments and results of a call, each with its address, which are used again and
# again.
_Frame = Tuple[Any, int, Any, int]


def _frame(argument_count: int, result_count: int) -> _Frame:
    arguments, results = (ctypes.c_void_p * argument_count)(), (ctypes.c_void_p * result_count)()
    return arguments, ctypes.addressof(arguments), results, ctypes.addressof(results)


_run = lean('kiln_executable_run')
_execute = lean('kiln_executable_execute')
_wait = lean('kiln_event_wait')
# Pending executions, with the flags they poll, in the order of their start.
_running: 'collections.deque[Event]' = collections.deque()


def _remember(event: Event, flag: Cancellation) -> None:
    """Keeps an event, and the flag polled by its execution, until that has ended."""
    lib.kiln_event_retain(event)
    _running.append(Event(event._as_parameter_, flag))
    try:
        while _running[0].ready:
            _running.popleft()
    except IndexError:  # another thread was quicker
        pass


@atexit.register
def _end_executions() -> None:
    """Cancels pending executions where possible: the library's threads must not call into Python
    after its end.
    """
    for event in list(_running):
        event.cancel()
    end = time.monotonic_ns() + 5 * 10**9
    while _running:
        error = _wait(_running.popleft()._as_parameter_, max(0, end - time.monotonic_ns()))
        if error is not None:
            lib.kiln_error_release(error)


class Executable(Handle):
    """A graph compiled for a device (`Graph.compile`). Any number of threads may run it at once."""

    __slots__ = ('_device', '_numbers', '_argument_count', '_result_count', '_argument_shapes',
                 '_result_shapes', '_aliases', '_frames', '_lenders', '_options', '_is_brief',
                 '_stays', '_home')
    _noun = 'executable'

    def __init__(self, address: int, calls_python: bool = False) -> None:
        super().__init__(address)
        self._device = Device.borrowed(lib.kiln_executable_device(self))
        self._home = self._device._as_parameter_
        count: int = lib.kiln_executable_argument_count(self)
        # Those that executions take.
        self._numbers = [i for i in range(count)
                         if not lib.kiln_executable_argument_is_frozen(self, i)]
        self._argument_count = len(self._numbers)
        self._result_count: int = lib.kiln_executable_result_count(self)
        self._argument_shapes: Optional[List[Shape]] = None
        self._result_shapes: Optional[List[Shape]] = None
        self._aliases: Optional[Dict[int, int]] = None
        self._frames: List[_Frame] = []
        self._lenders: Optional[List[Lender]] = None
        self._options: Dict[Any, Any] = {}
        cost = self.cost
        seconds = cost.flops * 1e-9 + cost.transcendentals * 2e-8 + cost.bytes_accessed * 1e-9
        self._is_brief = (seconds < _BRIEF and not cost.partial
                          and not self._device.name.startswith('REFERENCE'))
        # Python functions are called by the thread that runs it, unless others may.
        self._stays = calls_python

    def close(self) -> None:
        """Releases it; executions continue."""
        super().close()
        self._lenders = None
        self._device.close()

    @property
    def device(self) -> Device:
        """The device of the compilation."""
        return Device.borrowed(lib.kiln_executable_device(self))

    @property
    def argument_shapes(self) -> List[Shape]:
        """The shapes of the arguments, frozen ones among them."""
        if self._argument_shapes is None:
            count = lib.kiln_executable_argument_count(self)
            self._argument_shapes = [shape_of(lib.kiln_executable_argument_shape, self, i)
                                     for i in range(count)]
        return list(self._argument_shapes)

    @property
    def argument_names(self) -> List[str]:
        """The names of the arguments, frozen ones among them."""
        return [decoded(lib.kiln_executable_argument_name, self, i) or ''
                for i in range(lib.kiln_executable_argument_count(self))]

    @property
    def frozen(self) -> List[int]:
        """The numbers of the frozen arguments."""
        taken = set(self._numbers)
        return [i for i in range(lib.kiln_executable_argument_count(self)) if i not in taken]

    def bind(self, values: Mapping[Union[int, str], Any]) -> None:
        """Binds frozen arguments (`Graph.compile`), by number or name, to buffers and arrays: they
        are packed and computed with as constants are. Executions begun afterwards find them. Their
        memory must not be changed while they are bound; bind them anew to change them. Arguments
        that are computed with each other are bound together.
        """
        place = ctypes.c_size_t()
        numbers = []
        for key in values:
            if isinstance(key, str):
                lib.kiln_executable_find_argument(self, *text(key), ctypes.byref(place))
                numbers.append(place.value)
            else:
                numbers.append(key)
        buffers = [self._argument(number, value)
                   for number, value in zip(numbers, values.values())]
        for buffer in buffers:
            buffer.settle()
        list_of_numbers = (ctypes.c_size_t * len(numbers))(*numbers)

        def bind_them() -> None:
            lib.kiln_executable_bind(self, list_of_numbers, _places(buffers), len(buffers))

        with_causes(bind_them)

    @property
    def result_shapes(self) -> List[Shape]:
        """The shapes of the results."""
        return list(self._known_results())

    def _known_results(self) -> List[Shape]:
        if self._result_shapes is None:
            self._result_shapes = [shape_of(lib.kiln_executable_result_shape, self, i)
                                   for i in range(self._result_count)]
        return self._result_shapes

    @property
    def aliases(self) -> Dict[int, int]:
        """For each result that shares the memory of a donated argument, the number of the argument.
        """
        if self._aliases is None:
            self._aliases = {}
            place = ctypes.c_int64()
            for i in range(self._result_count):
                lib.kiln_executable_result_alias(self, i, ctypes.byref(place))
                if place.value >= 0:
                    self._aliases[i] = place.value
        return dict(self._aliases)

    @property
    def info(self) -> ProgramInfo:
        """Its cost."""
        struct = _structs.ProgramInfo()
        lib.kiln_executable_info(self, ctypes.byref(struct))
        return _info(struct)

    @property
    def memory(self) -> ProgramMemory:
        """Its memory."""
        struct = _structs.ProgramMemory()
        lib.kiln_executable_memory(self, ctypes.byref(struct))
        return ProgramMemory(*(getattr(struct, name) for name in ProgramMemory._fields))

    @property
    def cost(self) -> ProgramCost:
        """The work of a run."""
        struct = _structs.ProgramCost()
        lib.kiln_executable_cost(self, ctypes.byref(struct))
        return ProgramCost(struct.flops, struct.transcendentals, struct.bytes_accessed,
                           bool(struct.partial))

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits, the same for equal executables of one build of the library, in
        every process.
        """
        return made_text(lib.kiln_executable_fingerprint, self)

    def save(self, path: Path) -> None:
        """Writes it into a file, for `Context.load` in this or another process. The file takes the
        path's place once it is complete; after a failure the old one is there as it was.
        """
        lib.kiln_executable_save(self, *path_text(path))

    def serialize(self) -> bytes:
        """The bytes of such a file, for `Context.deserialize`."""
        return made_bytes(lib.kiln_executable_serialize, self)

    def __repr__(self) -> str:
        if self.closed:
            return '<kiln.Executable closed>'
        arguments = ', '.join('{}: {!r}'.format(name, shape) for name, shape
                              in zip(self.argument_names, self.argument_shapes))
        return '<kiln.Executable ({}) -> ({}) on {}>'.format(
            arguments, ', '.join(map(repr, self.result_shapes)), self._device.name)

    def __call__(self, *arguments: Any, donate: Donation = False) -> List[Buffer]:
        """`run` with the defaults."""
        # Written for speed: a small program is done in a microsecond.
        count = len(arguments)
        if donate is not False or not self._is_brief or count != self._argument_count:
            return self.run(arguments, donate=donate)
        try:
            places, argument_place, results, result_place = frame = self._frames.pop()
        except IndexError:
            places, argument_place, results, result_place = frame = _frame(
                count, self._result_count)
        borrowed = None  # keeps what is made of arrays
        at = 0
        for argument in arguments:
            if type(argument) is not Buffer:
                if borrowed is None:
                    borrowed = []
                argument = self._lend(at, argument)
                borrowed.append(argument)
            elif argument._pending:
                argument.settle()
            places[at] = argument._as_parameter_
            at += 1
        error = _run(self._as_parameter_, None, argument_place, count, result_place,
                     self._result_count)
        if error is not None:
            raise_error(error)
        shapes, home = self._result_shapes or self._known_results(), self._home
        made_buffers = []
        at = 0
        for address in results:
            made_buffers.append(Buffer(address, False, False, shapes[at], home))
            results[at] = None
            at += 1
        self._frames.append(frame)
        return made_buffers

    def _lend(self, place: int, array: Any) -> Buffer:
        """A buffer of an execution's argument for the time of a call."""
        if self._lenders is None:
            shapes = self.argument_shapes
            self._lenders = [Lender(self._device, shapes[number]) for number in self._numbers]
        buffer = self._lenders[place].lend(array)
        return self._argument(self._numbers[place], array) if buffer is None else buffer

    def _argument(self, number: int, array: Any) -> Buffer:
        shapes = self._argument_shapes or self.argument_shapes
        dtype = shapes[number].dtype if number < len(shapes) else 'f64'
        return self._device._argument(array, dtype)

    def _bound(self, arguments: Sequence[Any], donate: Donation) -> List[Buffer]:
        """The arguments as buffers; shared ones cannot be donated."""
        numbers = self._numbers
        buffers = [self._argument(numbers[i] if i < len(numbers) else len(self.argument_shapes), a)
                   for i, a in enumerate(arguments)]
        if donate is not False:
            donated = self.aliases.values() if donate is True else donate
            for i in donated:
                if i in numbers[:len(buffers)] and buffers[numbers.index(i)].is_shared:
                    raise ValueError('argument {} cannot be donated: arrays of NumPy\'s use its '
                                     'memory'.format(i))
        return buffers

    def _usual_options(self, threads: int, donate: Donation) -> Any:
        """The address of options, made once; None for the defaults."""
        if threads == 0 and donate is False:
            return None
        key = (threads, donate if isinstance(donate, bool) else tuple(donate))
        struct = self._options.get(key)
        if struct is None:
            struct = self._options.setdefault(key, _execute_options(threads, None, None, donate))
        return ctypes.addressof(struct)

    def run(self, arguments: Sequence[Any], results: Optional[Sequence[Optional[Buffer]]] = None,
            threads: int = 0, cancel: Optional[Cancellation] = None,
            stream: Optional[int] = None, donate: Donation = False,
            timeout: Optional[float] = None, trace: Optional['Trace'] = None) -> List[Buffer]:
        """Executes, and returns when the results are ready. Ctrl-C cancels it, and sets `cancel`.
        An execution that does not end at once continues in the background, and buffers in `results`
        are not ready until it has ended.

        Args:
            arguments: those that are not frozen: buffers; arrays, which are borrowed (`Device.borrow`), or copied if their
                memory has another form; and numbers
            results: for each result a buffer to write it into, or None for a new one
            threads: how many to use at most; 0: as many as the context has
            cancel: the means to cancel the execution
            stream: the address of a CUstream in whose order it is done, on a GPU
            donate: the numbers of donated arguments: results aliased with them are made in their
                memory. True: all aliased arguments
            timeout: the time limit in seconds
            trace: records this run (`Context.run_trace`)
        """
        buffers = self._bound(arguments, donate)
        for buffer in buffers + [r for r in results or () if r is not None]:
            buffer.settle()
        made_results = _Results(self._result_count, results)
        if self._is_brief and cancel is None and stream is None and timeout is None \
                and trace is None:
            error = _run(self._as_parameter_, self._usual_options(threads, donate),
                         _places(buffers), len(buffers), made_results.places, made_results.count)
            if error is not None:
                raise_error(error)
            return made_results.buffers()
        flag = Cancellation() if cancel is None else cancel
        struct = _execute_options(threads, flag, stream, donate, timeout, trace)

        def execute() -> List[Buffer]:
            lib.kiln_executable_run(self, ctypes.byref(struct), _places(buffers), len(buffers),
                                    made_results.places, made_results.count)
            return made_results.buffers()

        if self._is_brief or self._stays:
            return with_causes(execute)
        return interruptible(lambda: with_causes(execute), flag.set, made_results.leave)

    def start(self, arguments: Sequence[Any],
              results: Optional[Sequence[Optional[Buffer]]] = None,
              threads: int = 0, stream: Optional[int] = None,
              donate: Donation = False, cancel: Optional[Cancellation] = None
              ) -> Tuple[List[Buffer], Event]:
        """Executes asynchronously. The results can be used at once, as arguments too; users of
        their values wait for them. On a `stream`, as in `run`, the execution has its place when
        this returns. `event.cancel()` ends it.

        Returns:
            the results, and an event that is ready when the execution has ended
        """
        buffers = self._bound(arguments, donate)
        made_results = _Results(self._result_count, results)
        flag = Cancellation() if cancel is None else cancel
        struct = _execute_options(threads, flag, stream, donate)
        # One device's list of each.
        places = _places(buffers)
        given = ctypes.c_void_p(ctypes.addressof(places))
        wanted = ctypes.c_void_p(ctypes.addressof(made_results.places))
        place = ctypes.c_void_p()
        error = _execute(self._as_parameter_, ctypes.addressof(struct), ctypes.addressof(given),
                         len(buffers), ctypes.addressof(wanted), made_results.count, 1,
                         ctypes.addressof(place))
        if error is not None:
            raise_error(error)
        event = Event(place.value or 0, flag)
        pending = not event.ready  # small work is done during the call
        if pending:
            _remember(event, flag)
        return made_results.buffers(pending), event


_OPTIMIZATIONS = ('auto', 'quick', 'full')
_DUMP_FORMS = {'text': 1, 'dot': 2, 'html': 4, 'svg': 8}


def compile_graph(graph: 'Graph', device: Optional[Device], symbols: Mapping[str, int],
                  disabled_passes: Sequence[str], verify: bool,
                  dump_folder: Optional[str], optimization: str, precision: Tuple[bool, bool, bool],
                  aliases: Mapping[int, int], must_donate: bool,
                  cancel: Optional[Cancellation], timeout: Optional[float],
                  frozen: Sequence[Union[int, str]],
                  memory_limit_bytes: int, dump_forms: Sequence[str]) -> Executable:
    """`Graph.compile`; `precision` is allow_tf32, allow_bf16 and keep_subnormals."""
    if optimization not in _OPTIMIZATIONS:
        raise ValueError(f'optimization is {optimization!r}, not one of {_OPTIMIZATIONS}')
    for form in dump_forms:
        if form not in _DUMP_FORMS:
            raise ValueError(f'dump_forms has {form!r}, not one of {tuple(_DUMP_FORMS)}')
    sizes = [_structs.SymbolSize(*text(name), size) for name, size in symbols.items()]
    pairs = [_structs.Alias(result, argument, int(must_donate), 0)
             for result, argument in aliases.items()]
    flag = Cancellation() if cancel is None else cancel
    passes, passes_length = text(','.join(disabled_passes))
    folder, folder_length = text(dump_folder or '')
    numbers = [mark for mark in frozen if not isinstance(mark, str)]
    names, names_length = text('\n'.join(mark for mark in frozen if isinstance(mark, str)))
    struct = options(
        _structs.CompileOptions, lib.kiln_compile_options_init, verify=int(verify),
        optimization=_OPTIMIZATIONS.index(optimization), allow_tf32=int(precision[0]),
        allow_bf16=int(precision[1]), keep_subnormals=int(precision[2]),
        device=None if device is None else device._as_parameter_,
        symbols=(_structs.SymbolSize * len(sizes))(*sizes), symbol_count=len(sizes),
        aliases=(_structs.Alias * len(pairs))(*pairs), alias_count=len(pairs),
        disabled_passes=passes, disabled_passes_length=passes_length,
        dump_folder=folder if folder_length else None, dump_folder_length=folder_length,
        dump_forms=sum(_DUMP_FORMS[form] for form in set(dump_forms)),
        frozen=(ctypes.c_size_t * len(numbers))(*numbers), frozen_count=len(numbers),
        frozen_names=names, frozen_names_length=names_length,
        memory_limit_bytes=memory_limit_bytes,
        cancel=ctypes.pointer(flag._flag),
        timeout_ns=0 if timeout is None else max(1, int(timeout * 1e9)))
    calls_python = graph.context.calls_python

    def compile_it() -> Executable:
        return Executable(made(lib.kiln_graph_compile, graph, ctypes.byref(struct)), calls_python)

    return interruptible(compile_it, flag.set)
