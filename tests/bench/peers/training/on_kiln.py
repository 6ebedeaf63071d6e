"""Trainings on Kiln: its C functions, called by way of bindings/python."""

import ctypes
import time

import kiln
import numpy as np
from kiln import _library, executable as kiln_executable, train

import cases


def _dense(graph, x, w, b):
    return kiln.nn.add(graph.dot(x, w, [], [], [1], [0]), b)


def _relu(graph, x):
    return kiln.nn.maximum(x, graph.scalar('f32', 0))


def perceptron(graph, p, images):
    x = images
    layers = len(p) // 2
    for i in range(layers):
        x = _dense(graph, x, p[f'w{i}'], p[f'b{i}'])
        if i + 1 < layers:
            x = _relu(graph, x)
    return x


def convolutional(graph, p, images):
    x = images
    for i, (side, _, _) in enumerate(cases.FILTERS):
        x = graph.convolution(x, p[f'filter{i}'], [side, side], 'b01f_01io->b01f', [2, 2],
                              padding_low=[side // 2] * 2, padding_high=[side // 2] * 2)
        x = _relu(graph, kiln.nn.add(x, p[f'offset{i}']))
    return _dense(graph, graph.reshape(x, [x.shape.dims[0], cases.FLAT]), p['w0'], p['b0'])


def transformer(graph, p, text):
    batch = text.shape.dims[0]
    rows, width = batch * cases.LENGTH, cases.WIDTH
    dot = lambda x, w: graph.dot(x, w, [], [], [1], [0])  # noqa: E731
    norm = lambda x, scale: kiln.nn.rms_norm(x, scale, -1, cases.EPSILON)  # noqa: E731
    x = kiln.nn.add(kiln.nn.take(p['embedding'], text, 0, 'clip'), p['positions'])
    x = graph.reshape(x, [rows, width])
    for i in range(cases.LAYERS):
        together = dot(norm(x, p[f'norm1.{i}']), p[f'queries{i}'])
        parts = [graph.reshape(graph.slice(together, [0, at * width], [rows, (at + 1) * width], [1, 1]),
                               [batch, cases.LENGTH, cases.HEADS, width // cases.HEADS])
                 for at in range(3)]
        attended = graph.reshape(kiln.nn.attention(*parts, is_causal=True), [rows, width])
        x = x + dot(attended, p[f'attended{i}'])
        inner = kiln.nn.gelu(dot(norm(x, p[f'norm2.{i}']), p[f'inner{i}']), True)
        x = x + dot(inner, p[f'outer{i}'])
    return dot(norm(x, p['norm']), p['output'])


class Training:
    """A training: `call` makes a step, `loss` tells the last one's loss."""

    def __init__(self, context, case, dump_folder=None):
        arrays, batch = case.parameters(), cases.batch_of(case)
        optimizer = train.Optimizer(case.optimizer)
        initial, graph = context.graph('initial'), context.graph('step')
        values = [initial.parameter('f32', list(x.shape), name) for name, x in arrays.items()]
        count = len(values)
        values += optimizer.state(values)
        initial.set_results(*values)
        values = train.parameters(graph, values)
        given = graph.parameter('s32' if 'text' in batch else 'f32',
                                list(batch['text' if 'text' in batch else 'images'].shape))
        labels = graph.parameter('s32', list(batch['labels'].shape))
        logits = globals()[case.model](graph, dict(zip(arrays, values)), given)
        loss = train.softmax_cross_entropy(logits, labels)
        gradients = graph.gradient(loss, values[:count])
        if case.clip:
            gradients = train.clip_by_norm(gradients, case.clip)
        update = optimizer.update(case.rate, values[:count], gradients, values[count:])
        graph.set_results(*update.parameters, *update.state, loss)
        self.executable = graph.compile(aliases={i: i for i in range(len(values))},
                                        dump_folder=dump_folder)
        device = self.executable.device
        self._batch = [device.copy(x) for x in batch.values()]
        self._buffers = initial.compile()(*[device.copy(x) for x in arrays.values()])
        self._state = len(values)
        # What `run` makes of its arguments at each call takes Python longer than small work takes.
        self._options = ctypes.byref(kiln_executable._execute_options(0, None, donate=True))
        self._arguments = kiln_executable._places(self._buffers + self._batch)
        self._results = (ctypes.c_void_p * (self._state + 1))()
        for buffer in self._buffers:
            _library.lib.kiln_buffer_retain(buffer)

    def call(self, run=_library.lib.kiln_executable_run, release=_library.lean('kiln_buffer_release')):
        arguments, results, state = self._arguments, self._results, self._state
        release(results[state])
        for i in range(state + 1):
            results[i] = None
        run(self.executable, self._options, arguments, len(arguments), results, len(results))
        for i in range(state):
            release(arguments[i])
            arguments[i] = results[i]

    def wait(self):
        pass

    def loss(self):
        value = ctypes.c_float()
        _library.lib.kiln_buffer_copy_to_host(self._results[self._state], ctypes.byref(value), 4)
        return value.value


class Kiln:
    """Makes trainings on Kiln."""

    def __init__(self, threads):
        self.context = kiln.Context(threads=threads)
        self._products = {}

    def training(self, case):
        return Training(self.context, case)

    def rate(self, side):
        """Floating-point operations per second of a product of square matrices, now."""
        if side not in self._products:
            graph = self.context.graph('product')
            factors = [graph.parameter('f32', [side, side]) for _ in range(2)]
            graph.set_results(graph.dot(*factors, [], [], [1], [0]))
            device = self.context.device()
            arrays = [device.copy(np.full((side, side), value, np.float32)) for value in (.5, .25, 0)]
            self._products[side] = graph.compile(), arrays[:2], arrays[2:]
        product, given, results = self._products[side]
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            product.run(given, results)
            seconds.append(time.perf_counter() - start)
        return 2 * side ** 3 / min(seconds)
