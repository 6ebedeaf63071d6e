"""Modules on Kiln: its C functions, called by way of bindings/python."""

import ctypes

import kiln
import numpy as np
from kiln import _library, executable as kiln_executable


class Program:
    """An executable on arrays: `call` runs it. Results are in the memory of the last call's; those
    aliased with an argument take its memory, and are the argument of the next call."""

    def __init__(self, executable, arrays):
        self._executable = executable
        self._buffers = [executable.device.copy(x) for x in arrays]
        # What `run` makes of its arguments at each call takes Python longer than small work takes.
        self._options = ctypes.byref(kiln_executable._execute_options(0, None, donate=True))
        self._arguments = kiln_executable._places(self._buffers)
        count = len(executable.result_shapes)
        self._places = (ctypes.c_void_p * count)()
        self._carried = list(executable.aliases.items())
        self._results = [None] * count
        self._run()
        for k in range(count):
            if self._results[k] is None:
                self._results[k] = kiln.Buffer(self._places[k])

    def _run(self, run=_library.lib.kiln_executable_run, made=kiln.Buffer):
        arguments, places = self._arguments, self._places
        run(self._executable, self._options, arguments, len(arguments), places, len(places))
        for result, argument in self._carried:
            self._results[result] = self._buffers[argument] = made(places[result])
            arguments[argument], places[result] = places[result], None

    call = _run

    def wait(self):
        pass

    def results(self):
        return [np.array(buffer) for buffer in self._results]


class Kiln:
    """The library, with so many threads."""

    def __init__(self, threads):
        self._context = kiln.Context(threads=threads, gpu='OFF', cache_bytes=-1)

    def read(self, text):
        return text

    def compile(self, text):
        return self._context.graph_from_hlo_text(text).compile()

    def argument_types(self, _, executable):
        return [kiln.DType(shape.dtype).dtype for shape in executable.argument_shapes]

    def program(self, _, executable, arrays):
        return Program(executable, arrays)
