"""Kiln: graphs of tensor operations, compiled to native code.

    import kiln, numpy

    with kiln.Context() as context:
        graph = context.graph()
        x = graph.parameter('f32', [1000])
        graph.set_results(graph.reduce_by(x * x + 1.0, [0]))
        total, = graph.compile()(numpy.ones(1000, numpy.float32))
        print(numpy.asarray(total))

Failures are raised as `KilnError`. See `Context`, `Graph`, `Executable`, `Session` and `Buffer`.
"""

from ._arrays import Shape
from ._calls import CallArray, CustomCall
from ._library import Code, KilnError
from ._table import ALIGNMENT, VERSION
from .context import Context, Trace
from .device import Buffer, Device, Event, MemoryInfo
from .executable import (Cancellation, Executable, ProgramCost, ProgramInfo, ProgramMemory,
                         Session)
from .graph import Graph, Value

__all__ = ['ALIGNMENT', 'Buffer', 'CallArray', 'Cancellation', 'Code', 'Context', 'CustomCall',
           'Device', 'Event', 'Executable', 'Graph', 'KilnError', 'MemoryInfo', 'ProgramCost', 'ProgramInfo',
           'ProgramMemory', 'Session', 'Shape', 'Trace', 'VERSION', 'Value']
__version__ = '.'.join(map(str, VERSION))
