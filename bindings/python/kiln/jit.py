"""Functions of arrays that are compiled when they are called."""

import functools
import inspect
import operator
import threading
import types
import weakref
from collections import OrderedDict
from typing import (Any, Callable, Dict, Hashable, Iterator, List, NamedTuple, Optional, Sequence,
                    Tuple, Union, overload)

from ._library import KilnError, lean
from ._operators import as_number
from ._signatures import Family, Layout, Sizes, Symbolic
from ._table import Code
from ._trees import (LEAF, NUMBERS, Spec, flatten, is_array, number_array, paths, spec_of,
                     unflatten)
from .context import Context, default_context
from .device import Buffer, Device
from .executable import Executable
from .graph import Graph
from .session import Function
from .symbol import Looks
from .value import Value

# --- Programs

class CacheInfo(NamedTuple):
    """The cache of a function of `kiln.jit`, as functools.lru_cache reports it."""

    hits: int
    """calls whose signature was there"""
    misses: int
    """calls whose signature was new"""
    maxsize: int
    """the most programs kept"""
    currsize: int
    """programs kept now"""


_device_of = lean('kiln_buffer_device')


class _Program:
    """A compiled signature; made by the thread that holds the lock."""

    __slots__ = ('lock', 'run', 'structure', 'failed', 'family')

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.run: Optional[Callable[[List[Any]], List[Buffer]]] = None
        self.structure: Any = None  # of the results
        self.failed = False
        self.family: Optional[Family] = None  # which lives as long as a program of it


def _home_of(buffer: Buffer) -> int:
    """The address of a buffer's device."""
    home = buffer._home
    if home is None:
        home = buffer._home = _device_of(buffer._as_parameter_)
    return home


def _runner(compiled: Union[Executable, Function], context: Context, device: Device
            ) -> Callable[[List[Any]], List[Buffer]]:
    """A call of a compiled graph, with arguments from any device, of any context."""
    # A function copies buffers itself from other devices of its context.
    homes = {d._as_parameter_ for d in
             (context.devices if isinstance(compiled, Function) else [device])}

    def run(leaves: List[Any]) -> List[Buffer]:
        for i, leaf in enumerate(leaves):
            if type(leaf) is Buffer and _home_of(leaf) not in homes:
                leaves[i] = leaf.to(device)
        return compiled(*leaves)

    return run


class _Recent:
    """The program of the last call, with the arguments that it is for: buffers, arrays and numbers,
    known again without their signature."""

    __slots__ = ('context', '_program', '_tokens')

    def __init__(self, context: Context, program: _Program, tokens: List[Any]) -> None:
        self.context, self._program, self._tokens = context, program, tokens

    @classmethod
    def of(cls, context: Context, args: Tuple[Any, ...], program: _Program
           ) -> 'Optional[_Recent]':
        """Of a call; None for arguments of other kinds."""
        tokens: List[Any] = []
        for argument in args:
            kind = type(argument)
            if kind is Buffer:
                tokens.append((kind, argument.shape, None))
            elif kind in NUMBERS:
                tokens.append((kind, None, NUMBERS[kind][0]))
            elif is_array(argument):
                tokens.append((kind, argument.shape, argument.dtype))
            else:
                return None
        return cls(context, program, tokens)

    def leaves_of(self, args: Tuple[Any, ...]) -> Optional[List[Any]]:
        """The program's arguments, if these are such."""
        leaves = list(args)
        if len(leaves) != len(self._tokens):
            return None
        at = 0
        for kind, dims, dtype in self._tokens:
            argument = leaves[at]
            if type(argument) is not kind:
                return None
            if kind is Buffer:
                if argument._shape is not dims:
                    return None
            elif dims is None:
                leaves[at] = number_array(argument, dtype)
            elif argument.shape != dims or argument.dtype != dtype:
                return None
            at += 1
        return leaves

    def results_of(self, leaves: List[Any]) -> Any:
        """What the program makes of them."""
        run = self._program.run
        assert run is not None
        results = run(leaves)
        structure = self._program.structure
        return results[0] if structure is LEAF else unflatten(structure, iter(results))


class Jitted:
    """A function of `kiln.jit`. Any number of threads may call it at once: a signature is compiled
    by the first of them.

    Attributes:
        __wrapped__: the function itself
    """

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], context: Optional[Context],
                 device: Union[None, str, Device], static_argnums: Union[int, Sequence[int]],
                 must_compile: bool, max_programs: int, lazy: bool,
                 asynchronous_compilation: bool) -> None:
        if not callable(function):
            raise TypeError('{!r} cannot be called'.format(function))
        if isinstance(device, Device) and context is None:
            raise ValueError('{!r} needs its context: jit(context=..., device=...)'.format(device))
        if max_programs < 1:
            raise ValueError('max_programs is {}'.format(max_programs))
        if must_compile and (lazy or asynchronous_compilation):
            raise ValueError('{} needs must_compile=False'.format(
                'lazy' if lazy else 'asynchronous_compilation'))
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self._context, self._device_wanted = context, device
        self._must_compile, self._max_programs = must_compile, max_programs
        self._lazy, self._asynchronous = lazy, asynchronous_compilation
        self._names = _parameter_names(function)
        self._static = self._static_positions(static_argnums)
        self._static_names = frozenset(self._names[i] for i in self._static if i < len(self._names))
        self._lock = threading.Lock()
        self._programs: 'OrderedDict[Hashable, _Program]' = OrderedDict()
        self._families: 'weakref.WeakValueDictionary[Hashable, Family]' = (
            weakref.WeakValueDictionary())
        self._hits = self._misses = 0
        self._device_used: Optional[Tuple[Context, Device]] = None
        self._recent: Optional[_Recent] = None

    def __repr__(self) -> str:
        return '<kiln.jit {}>'.format(getattr(self, '__qualname__', self.__wrapped__))

    def __get__(self, instance: Any, _owner: Optional[type] = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _static_positions(self, static_argnums: Union[int, Sequence[int]]) -> Tuple[int, ...]:
        """The numbers of static arguments; negative ones count from the last parameter."""
        given = ([operator.index(static_argnums)] if hasattr(static_argnums, '__index__')
                 else list(static_argnums))
        positions = []
        for number in given:
            if not -len(self._names) <= number and number < 0:
                raise ValueError('static_argnums has {}; the function has {} parameters'.format(
                    number, len(self._names)))
            positions.append(number % len(self._names) if number < 0 else number)
        return tuple(sorted(set(positions)))

    # --- Calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, compiled. With a value of a graph, as in another function that is
        traced, it becomes part of that graph.
        """
        recent = self._recent
        if recent is not None and not kwargs:
            again = recent.leaves_of(args)
            if again is not None and self._place()[0] is recent.context:
                with self._lock:
                    self._hits += 1
                return recent.results_of(again)
        leaves: List[Any] = []
        static, dynamic, named = self._split(args, kwargs)
        structure = flatten((dynamic, named), leaves)
        if Value in map(type, leaves):
            return self.__wrapped__(*args, **kwargs)
        context, device = self._place()
        specs = self._specs(leaves, structure, device)
        key = (context, structure, specs, static)
        program = self._program(key)
        while program.run is None:
            with program.lock:
                if program.run is None and not program.failed:
                    self._make(program, key, device, len(args))
            if program.failed:
                program = self._program(key)
        results = program.run(leaves)  # may trace the function, so the structure is read after it
        if not kwargs and not self._static:
            self._recent = _Recent.of(context, args, program)
        return unflatten(program.structure, iter(results))

    def _split(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]
               ) -> Tuple[Hashable, Tuple[Any, ...], Dict[str, Any]]:
        """Static arguments, by position or name; the other positional and the other named ones."""
        if not self._static:
            return (), args, kwargs
        static: List[Tuple[Any, type, Any]] = [
            (i, type(args[i]), args[i]) for i in self._static if i < len(args)]
        static += [(name, type(kwargs[name]), kwargs[name])
                   for name in sorted(self._static_names & kwargs.keys())]
        for number, _, argument in static:
            try:
                hash(argument)
            except TypeError:
                raise TypeError('{}: the static argument {} is a {}, which has no hash'.format(
                    self._title(), number, type(argument).__name__)) from None
        return (tuple(static), tuple(arg for i, arg in enumerate(args) if i not in self._static),
                {name: arg for name, arg in kwargs.items() if name not in self._static_names})

    def _place(self) -> Tuple[Context, Device]:
        """The context and the device."""
        context = default_context() if self._context is None else self._context
        used = self._device_used
        if used is None or used[0] is not context:
            wanted = self._device_wanted
            device = wanted if isinstance(wanted, Device) else context.device(wanted or 'CPU:0')
            used = self._device_used = (context, device)
        return used

    def _specs(self, leaves: List[Any], structure: Any, device: Device) -> Tuple[Spec, ...]:
        """The specs of all leaves; numbers become arrays, and other objects buffers."""
        specs = []
        for i, leaf in enumerate(leaves):
            try:
                spec = spec_of(leaf)
                if spec is None:
                    leaves[i] = leaf = device._argument(leaf, 'f64')
                    spec = leaf.shape.dtype, leaf.shape.dims, False
                elif spec[2]:
                    leaves[i] = number_array(leaf, spec[0])
            except (TypeError, ValueError) as error:
                path = list(self._leaf_names(structure))[i]
                raise TypeError('{}: the argument {} is neither an array nor a number ({}); other '
                                'objects can be static_argnums'.format(
                                    self._title(), path, error)) from error
            specs.append(spec)
        return tuple(specs)

    def _title(self) -> str:
        return str(getattr(self.__wrapped__, '__name__', 'function'))

    def _leaf_names(self, structure: Any) -> Iterator[str]:
        """A name for each argument of the graph."""
        _, (positional, named) = structure
        at = [i for i in range(len(positional[1]) + len(self._static)) if i not in self._static]
        for number, child in zip(at, positional[1]):
            name = self._names[number] if number < len(self._names) else 'arg{}'.format(number)
            yield from paths(child, name)
        for name, child in zip(named[2], named[1]):
            yield from paths(child, name)

    # --- Programs

    def _program(self, key: Hashable) -> _Program:
        """The program of a signature, possibly still to be made."""
        with self._lock:
            program = self._programs.get(key)
            if program is not None and not program.failed:
                self._hits += 1
                self._programs.move_to_end(key)
                return program
            self._misses += 1
            program = self._programs[key] = _Program()
            while len(self._programs) > self._max_programs:
                self._programs.popitem(last=False)
            return program

    def _make(self, program: _Program, key: Any, device: Device, count: int) -> None:
        """Makes the program of a signature.

        The first signature of a structure, with element types and ranks, is traced for its sizes.
        The second one is traced with symbols for those that differ, and that graph serves further
        signatures without another call of the Python function.
        """
        try:
            sizes = tuple(dims for _, dims, _ in key[2])
            program.family = family = self._family(key)
            was_closed = family.is_closed
            symbolic = self._symbolic(family, key, sizes, device, count)
            if symbolic is not None and self._make_of(symbolic, program, key, sizes, device, count):
                return
            try:
                self._make_for_sizes(program, key, device, count)
            except BaseException:
                family.is_closed = was_closed  # that was not because of symbols
                raise
            with family.lock:
                if not family.known:
                    family.known.append(sizes)
        except BaseException:
            program.failed = True
            with self._lock:
                if self._programs.get(key) is program:
                    del self._programs[key]
            raise

    def _make_for_sizes(self, program: _Program, key: Any, device: Device, count: int) -> None:
        """Traces the function for the sizes of a signature, and compiles the graph."""
        graph, program.structure = self._graph(key, [dims for _, dims, _ in key[2]], count)
        if graph is None:
            program.run = lambda _leaves: []
            return
        program.run = _runner(graph.compile(device) if self._must_compile
                              else self._function(graph, device), key[0], device)

    def _function(self, graph: Graph, device: Device) -> Function:
        return Function(graph, device, lazy=self._lazy, max_programs=self._max_programs,
                        asynchronous_compilation=self._asynchronous)

    # --- Graphs with symbols

    def _family(self, key: Any) -> Family:
        """The family of a signature."""
        context, structure, specs, static = key
        kinds = tuple((dtype, len(dims), is_number) for dtype, dims, is_number in specs)
        with self._lock:
            return self._families.setdefault((context, structure, kinds, static), Family())

    def _symbolic(self, family: Family, key: Any, sizes: Sizes, device: Device, count: int
                  ) -> Optional[Symbolic]:
        """A graph with symbols that serves a signature, made for it where one can be."""
        with family.lock:
            found = family.find(sizes)
            layout = None if found is not None else family.next_layout(sizes)
            if layout is not None and self._extend(family, key, layout, device, count):
                family.known.append(sizes)
                found = family.find(sizes)  # it may have asked whether a size is the present one
            return found

    def _extend(self, family: Family, key: Any, layout: Layout, device: Device, count: int) -> bool:
        """Traces the function with symbols. False, and the family is closed, if it asks for the
        numbers of sizes, or if an op cannot do without them.
        """
        family.is_closed = True  # for calls of the function in the function
        try:
            graph, structure = self._graph(key, layout, count)
            if graph is None or graph.looks is None or graph.looks.are_refused:
                return False
            function = None
            if not self._must_compile:
                # A run that fails by its sizes is repeated (`_first_run`), but no side effect.
                if graph.has_effects:
                    return False
                function = self._function(graph, device)
            family.symbolics.append(Symbolic(layout, graph, function, structure))
        except Exception:  # pylint: disable=broad-except
            return False  # a mistake of the function is told when it is traced for sizes
        except BaseException:
            family.is_closed = False
            raise
        family.is_closed = False
        return True

    def _make_of(self, symbolic: Symbolic, program: _Program, key: Any, sizes: Sizes,
                 device: Device, count: int) -> bool:
        """Makes a program of a graph with symbols; False if an op refuses the sizes, as a slice
        beyond the end, which is cut off where it is traced for numbers.
        """
        if symbolic.function is not None:
            run = self._first_run(program, symbolic.function, key, device, count)
        else:
            try:
                run = _runner(symbolic.compile(device, sizes), key[0], device)
            except KilnError as error:
                if error.code != Code.INVALID_ARGUMENT:
                    raise
                return False
        program.structure, program.run = symbolic.structure, run
        return True

    def _first_run(self, program: _Program, function: Function, key: Any, device: Device,
                   count: int) -> Callable[[List[Any]], List[Buffer]]:
        """A call of a function with symbols for new sizes. A function tells only then that an op
        refuses them.
        """
        usual = _runner(function, key[0], device)

        def run(leaves: List[Any]) -> List[Buffer]:
            try:
                results = usual(leaves)
            except KilnError as error:
                if error.code != Code.INVALID_ARGUMENT:
                    raise
                self._make_for_sizes(program, key, device, count)
                assert program.run is not None
                return program.run(leaves)
            program.run = usual
            return results

        return run

    # --- Tracing

    def _graph(self, key: Any, sizes: Union[Layout, List[Any]], count: int
               ) -> Tuple[Optional[Graph], Any]:
        """The graph of the function for a signature, or for symbols, and the structure of its
        results; no graph if there are none.
        """
        context, structure, specs, static = key
        graph = context.graph(self._title())
        if isinstance(sizes, Layout):
            graph.looks = Looks()
            sizes = sizes.graph_dims(graph)
        results = self._traced(graph, structure, specs, sizes, static, count)
        leaves: List[Any] = []
        results_structure = flatten(results, leaves)
        if not leaves:
            return None, results_structure
        graph.set_results(*[self._result(graph, leaf) for leaf in leaves])
        return graph, results_structure

    def _traced(self, graph: Graph, structure: Any, specs: Sequence[Spec], dims: List[Any],
                static: Any, count: int) -> Any:
        """What the function returns for parameters of a graph."""
        values = []
        for (dtype, _, is_number), sizes, name in zip(specs, dims, self._leaf_names(structure)):
            value = graph.parameter(dtype, sizes, name)
            values.append(as_number(value) if is_number else value)
        dynamic, named = unflatten(structure, iter(values))
        fixed = {where: argument for where, _, argument in static}
        rest = iter(dynamic)
        args = [fixed.pop(i) if i in fixed else next(rest) for i in range(count)]
        return self.__wrapped__(*args, **named, **fixed)

    def _result(self, graph: Graph, leaf: Any) -> Value:
        if not isinstance(leaf, Value):
            try:
                return graph.constant(leaf)
            except (TypeError, ValueError) as error:
                raise TypeError('{} returns a {}, which is neither an array nor a number'.format(
                    self._title(), type(leaf).__name__)) from error
        if leaf.graph is not graph:
            raise ValueError('{} returns {!r} of another graph, kept from another call'.format(
                self._title(), leaf.shape))
        return leaf

    # --- The cache

    def cache_info(self) -> CacheInfo:
        """The use of the cache."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._max_programs, len(self._programs))

    def cache_clear(self) -> None:
        """Drops all programs, and sets the counts to 0."""
        with self._lock:
            self._programs.clear()
            self._recent = None
            self._hits = self._misses = 0


def _parameter_names(function: Callable[..., Any]) -> List[str]:
    """The names of positional parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return []
    return [p.name for p in parameters
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


@overload
def jit(function: Callable[..., Any], *, context: Optional[Context] = ...,
        device: Union[None, str, Device] = ..., static_argnums: Union[int, Sequence[int]] = ...,
        must_compile: bool = ..., max_programs: int = ..., lazy: bool = ...,
        asynchronous_compilation: bool = ...) -> Jitted: ...


@overload
def jit(*, context: Optional[Context] = ..., device: Union[None, str, Device] = ...,
        static_argnums: Union[int, Sequence[int]] = ..., must_compile: bool = ...,
        max_programs: int = ..., lazy: bool = ..., asynchronous_compilation: bool = ...
        ) -> Callable[[Callable[..., Any]], Jitted]: ...


def jit(function: Optional[Callable[..., Any]] = None, *, context: Optional[Context] = None,
        device: Union[None, str, Device] = None, static_argnums: Union[int, Sequence[int]] = (),
        must_compile: bool = True, max_programs: int = 64, lazy: bool = False,
        asynchronous_compilation: bool = False) -> Any:
    """Compiles a function of arrays when it is called; a decorator, `@kiln.jit` or
    `@kiln.jit(device='GPU:0')`.

    Arguments are arrays, buffers and numbers, and tuples, lists, dicts and None of them. For a new
    signature (these structures, element types and sizes) the function is called with values of a
    new graph in their place, and the graph is compiled. So it computes with operators, NumPy's
    functions, `kiln.nn` and methods of `x.graph`; what else it does is done by that call only.
    Results are buffers in the structure that the function returns. Arrays and numbers from
    elsewhere are constants.

    Signatures that differ in sizes only have programs of their own, but the function is called for
    two of them at most where possible: for the first one, and with symbols (`Symbol`) for the sizes
    that change. It is called for each of them, though, if it asks for numbers of sizes, and not
    just whether they are equal, and for arrays with sizes of 0 and 1.

    A number, or a NumPy scalar, is an argument as well: other values need no compilation. With
    operators and NumPy's functions it takes the element type of the array it meets, as in NumPy,
    and so do results of numbers only; an int that does not fit is cut off. Ops of the graph and
    `kiln.nn` take it as it is, f64 or s64: `astype` converts. An argument that decides in Python
    (`if`, `range`) needs `static_argnums`.

    Args:
        context: None: `kiln.default_context()`. Buffers of other contexts and devices are copied
        device: its name, or a device of `context`; None: CPU:0
        static_argnums: the number of an argument, or several, whose values are part of the
            signature; they are hashable, and passed to the function as they are
        must_compile: whether the graph is compiled as a whole, or the call fails. False: clusters
            are compiled, and other ops run op by op (`Function`)
        max_programs: the most programs kept; the least recently used one goes
        lazy: whether clusters for new sizes run op by op until their second call, as those of
            `Function`; with must_compile=False
        asynchronous_compilation: whether clusters run op by op until they are compiled in the
            background; with must_compile=False
    """
    def decorate(decorated: Callable[..., Any]) -> Jitted:
        return Jitted(decorated, context, device, static_argnums, must_compile, max_programs, lazy,
                      asynchronous_compilation)

    return decorate if function is None else decorate(function)
