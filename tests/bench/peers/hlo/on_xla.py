"""Modules on XLA's CPU: its client, without JAX's tracing."""

import re

import jax
import jax.extend.backend
import numpy as np
from jaxlib import _hlo, _jax


def aliases(text):
    """The pairs of a result and the argument whose memory it takes, of a module's header."""
    header = text[:text.index('\n')]
    pairs = re.findall(r'\{(\d*)\}: \((\d+), \{\}, (?:may|must)-alias\)', header)
    return [(int(result or 0), int(argument)) for result, argument in pairs]


class Program:
    """An executable on arrays: `call` begins a run. A result aliased with an argument takes its memory,
    and is the argument of the next run."""

    def __init__(self, executable, carried, arrays):
        self._executable, self._carried = executable, carried
        # Copies, as some are donated.
        self._arguments = [jax.device_put(x, may_alias=False) for x in arrays]
        jax.block_until_ready(self._arguments)
        self.call()

    def call(self):
        results = self._executable.execute_sharded(self._arguments)
        self._results = [x for x, in results.disassemble_into_single_device_arrays()]
        for result, argument in self._carried:
            self._arguments[argument] = self._results[result]

    def wait(self):
        for result in self._results:
            result.block_until_ready()

    def results(self):
        return [np.asarray(result) for result in self._results]


class Xla:
    """The library, with as many threads as there are processors."""

    def __init__(self, _):
        self._client = jax.extend.backend.get_backend('cpu')
        self._devices = _jax.DeviceList(tuple(self._client.local_devices()[:1]))

    def read(self, text):
        """A module as JAX hands it to XLA, its argument types, and its aliases."""
        # XLA of JAX 0.10 does not know the attribute; its top-k is stable.
        module = _hlo.hlo_module_from_text(text.replace(', is_stable=true\n', '\n'))
        proto = module.as_serialized_hlo_module_proto()
        shapes = _hlo.XlaComputation(proto).program_shape().parameter_shapes()
        return _jax.mlir.hlo_to_stablehlo(proto), [s.numpy_dtype() for s in shapes], aliases(text)

    def compile(self, read):
        return self._client.compile_and_load(read[0], self._devices, _jax.CompileOptions())

    def argument_types(self, read, _):
        return read[1]

    def program(self, read, executable, arrays):
        return Program(executable, read[2], arrays)
