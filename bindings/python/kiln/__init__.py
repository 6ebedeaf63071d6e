"""Kiln: graphs of tensor operations, compiled to native code.

    import kiln, numpy

    with kiln.Context() as context:
        graph = context.graph()
        x = graph.parameter('f32', [1000])
        graph.set_results(graph.reduce_by(x * x + 1.0, [0]))
        total, = graph.compile()(numpy.ones(1000, numpy.float32))
        print(numpy.asarray(total))

`@kiln.jit` compiles functions of arrays when they are called. Failures are raised as `KilnError`.
See `Context`, `Graph`, `Executable`, `Session` and `Buffer`; `train` has losses and optimisers,
`safetensors` files of arrays.
"""

from . import nn, safetensors, train
from ._arrays import Shape
from ._calls import CallArray, CustomCall
from ._dtypes import DType
from ._library import KilnError
from ._numpy import empty, empty_like, full, zeros
from ._table import ALIGNMENT, VERSION, Code
from .context import Context, DiskCacheInfo, OpMetadata, Trace, default_context
from .device import Buffer, Cancellation, Device, Event, MemoryInfo
from .executable import Executable, ProgramCost, ProgramInfo, ProgramMemory
from .graph import Graph
from .jit import CacheInfo, Jitted, jit
from .session import Function, FunctionInfo, Session
from .symbol import Symbol
from .value import Value

__all__ = ['ALIGNMENT', 'Buffer', 'CacheInfo', 'CallArray', 'Cancellation', 'Code', 'Context',
           'CustomCall', 'DType', 'Device', 'DiskCacheInfo', 'Event', 'Executable', 'Function',
           'FunctionInfo', 'Graph', 'Jitted', 'KilnError', 'MemoryInfo', 'OpMetadata', 'ProgramCost',
           'ProgramInfo', 'ProgramMemory', 'Session', 'Shape', 'Symbol', 'Trace', 'VERSION', 'Value',
           'default_context', 'empty', 'empty_like', 'full', 'jit', 'nn', 'safetensors', 'train',
           'zeros']
__version__ = '.'.join(map(str, VERSION))
