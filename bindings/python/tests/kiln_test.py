"""The package on NumPy's arrays."""

import ctypes
import gc
import inspect
import json
import os
import tempfile
import threading
import time
import unittest
import weakref

import numpy

import kiln


def aligned(shape, dtype=numpy.float32):
    """An array of zeros that the library uses where it is."""
    size = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
    memory = numpy.zeros(size + kiln.ALIGNMENT, numpy.uint8)
    skip = -memory.ctypes.data % kiln.ALIGNMENT
    return memory[skip:skip + size].view(dtype).reshape(shape)


class KilnTest(unittest.TestCase):

    def setUp(self):
        self.context = kiln.Context(threads=2)
        self.cpu = self.context.device()

    def tearDown(self):
        self.context.close()

    def axpy(self):
        """y + a * x, for a scalar a and vectors of 5."""
        graph = self.context.graph('axpy')
        a = graph.parameter('f32', [], 'a')
        x = graph.parameter('f32', [5], 'x')
        y = graph.parameter('f32', [5], 'y')
        graph.set_results(graph.broadcast_like(a, x) * x + y)
        return graph

    def test_runs_where_the_arrays_are(self):
        executable = self.axpy().compile()
        self.assertEqual(executable.argument_names, ['a', 'x', 'y'])
        self.assertEqual(executable.argument_shapes[1], kiln.Shape('f32', (5,), 20))
        self.assertEqual(executable.result_shapes, [kiln.Shape('f32', (5,), 20)])
        self.assertEqual(executable.info.kernels, 1)
        a, x, y, out = aligned(()), aligned(5), aligned(5), aligned(5)
        a[...] = 2
        x[:] = numpy.arange(5)
        y[:] = 10
        buffers = [self.cpu.borrow(array) for array in (a, x, y, out)]
        for buffer, array in zip(buffers, (a, x, y, out)):
            self.assertEqual(buffer.address, array.ctypes.data)
            self.assertEqual(numpy.asarray(buffer).ctypes.data, array.ctypes.data)
        results = executable.run(buffers[:3], [buffers[3]])
        self.assertIs(results[0], buffers[3])
        self.assertEqual(out.tolist(), [10, 12, 14, 16, 18])
        x[0] = 7  # the next execution sees it
        executable.run(buffers[:3], [buffers[3]])
        self.assertEqual(out[0], 24)

    def test_memory_that_is_not_aligned(self):
        executable = self.axpy().compile()
        memory = aligned(20)
        x, out = memory[1:6], memory[7:12]
        x[:] = 1
        results = executable.run([numpy.float32(2), x, x], [self.cpu.borrow(out)])
        self.assertEqual(results[0].address, out.ctypes.data)
        self.assertEqual(memory.tolist(), [0] + [1] * 5 + [0] + [3] * 5 + [0] * 8)
        results, event = executable.start([numpy.float32(3), x, x], results)
        event.wait()
        self.assertEqual(out.tolist(), [4] * 5)

    def test_results_are_read_without_a_copy(self):
        a, x, y = numpy.float32(3), numpy.ones(5, numpy.float32), numpy.zeros(5, numpy.float32)
        result, = self.axpy().compile()(a, x, y)
        view = numpy.asarray(result)
        self.assertEqual(view.ctypes.data, result.address)
        self.assertEqual(view.dtype, numpy.float32)
        self.assertFalse(view.flags.writeable)
        self.assertEqual(result.address % kiln.ALIGNMENT, 0)
        result.close()  # the view holds on to the memory
        del result
        gc.collect()
        self.assertEqual(view.tolist(), [3] * 5)

    def test_borrowed_arrays_live_as_long_as_they_are_used(self):
        array = aligned(5)
        owner = weakref.ref(array)
        buffer = self.cpu.borrow(array)
        del array
        gc.collect()
        self.assertIsNotNone(owner())
        buffer.close()
        gc.collect()
        self.assertIsNone(owner())

    def test_copies(self):
        array = numpy.arange(6, dtype=numpy.int32).reshape(2, 3)
        buffer = self.cpu.copy(array.T)  # not in row-major order
        self.assertEqual(buffer.shape, kiln.Shape('s32', (3, 2), 24))
        self.assertEqual(numpy.asarray(buffer).tolist(), array.T.tolist())
        self.assertEqual(buffer.tobytes(), array.T.tobytes())
        self.assertEqual(repr(buffer), '<kiln.Buffer s32[3,2] on CPU:0>')
        with self.assertRaises(ValueError):
            self.cpu.borrow(array.T)
        other = buffer.to(self.context.device('REFERENCE:0'))
        self.assertEqual(other.device.name, 'REFERENCE:0')
        self.assertEqual(other.tobytes(), buffer.tobytes())
        self.assertEqual(numpy.asarray(self.cpu.zeros('f64', [2])).tolist(), [0, 0])
        self.assertEqual(self.cpu.copy(b'\x01\x02').shape.dtype, 'u8')

    def test_types(self):
        for name, kind in (('pred', bool), ('s8', numpy.int8), ('u16', numpy.uint16),
                           ('s64', numpy.int64), ('f16', numpy.float16), ('f64', float),
                           ('c64', numpy.complex64), ('c128', numpy.complex128)):
            array = numpy.ones(3, kind)
            buffer = self.cpu.copy(array)
            self.assertEqual(buffer.shape.dtype, name)
            self.assertEqual(numpy.asarray(buffer).dtype, array.dtype)
        bits = numpy.full(4, 0x3f80, numpy.uint16)
        buffer = self.cpu.copy(bits, dtype='bf16')
        self.assertEqual(buffer.shape, kiln.Shape('bf16', (4,), 8))
        self.assertEqual(numpy.asarray(buffer).view(numpy.uint16).tolist(), bits.tolist())
        with self.assertRaises(ValueError):
            self.cpu.copy(bits, dtype='f32')
        with self.assertRaises(ValueError):
            self.cpu.copy(numpy.zeros(3, 'datetime64[s]'))
        with self.assertRaises(ValueError):
            self.cpu.zeros('f33')

    def test_tokens(self):
        graph = self.context.graph_from_hlo_text(
            'HloModule m\nENTRY e {\n  t = token[] parameter(0)\n  x = f32[2] parameter(1)\n'
            '  u = token[] after-all(t)\n  y = f32[2] add(x, x)\n'
            '  ROOT r = (token[], f32[2]) tuple(u, y)\n}\n')
        executable = graph.compile()
        self.assertEqual(kiln.DType('token').kind, 'token')
        self.assertEqual([shape.dtype for shape in executable.argument_shapes], ['token', 'f32'])
        token, x = self.cpu.zeros('token'), numpy.ones(2, numpy.float32)
        for _ in range(3):
            token, x = executable(token, x)
        self.assertEqual(token.shape, kiln.Shape('token', (), 0))
        self.assertEqual(numpy.asarray(x).tolist(), [8, 8])

    def test_complex_numbers_and_small_types(self):
        reference = self.context.device('REFERENCE:0')
        z = numpy.array([1 + 2j, -1j, 3], numpy.complex128)
        graph = self.context.graph('complex')
        x = graph.parameter('c128', [3])
        graph.set_results(x * (2 - 1j) + 1, graph.abs(x), graph.real(x))
        results = graph.compile(reference)(reference.copy(z))
        for result, expected in zip(results, (z * (2 - 1j) + 1, abs(z), z.real)):
            self.assertEqual(numpy.asarray(result).dtype, expected.dtype)
            self.assertTrue(numpy.allclose(numpy.asarray(result), expected, rtol=1e-15))
        bits = numpy.array([0x38, 0xb8, 0x7e], numpy.uint8)
        graph = self.context.graph('small')
        y = graph.parameter('f8e4m3fn', [3])
        graph.set_results(y + y, graph.convert(y, 'f32'), graph.convert(y, 's4'))
        doubled, wide, ints = graph.compile(reference)(reference.copy(bits, dtype='f8e4m3fn'))
        self.assertEqual(doubled.shape, kiln.Shape('f8e4m3fn', (3,), 3))
        self.assertEqual(doubled.tobytes(), b'\x40\xc0\x7f')
        self.assertEqual(numpy.asarray(wide).tolist(), [1, -1, 448])
        self.assertEqual(ints.tobytes(), b'\x01\xff\x07')

    def test_read_only_arrays_are_arguments_alone(self):
        array = aligned(5)
        array.flags.writeable = False
        buffer = self.cpu.borrow(array)
        with self.assertRaises(ValueError):
            self.axpy().compile().run([numpy.float32(1), array, array], [buffer])

    def test_operators(self):
        graph = self.context.graph()
        x = graph.parameter(numpy.float32, [4])
        y = graph.parameter(numpy.dtype('float32'), [4])
        graph.set_results(x + y, x - 1, 1 - x, 2 / x, -x, abs(y), x ** 2, x > y, (x > y) & (y > x),
                          x % 2)
        a = numpy.array([1, 2, 3, 4], numpy.float32)
        b = numpy.array([-4, 3, -2, 5], numpy.float32)
        expected = [a + b, a - 1, 1 - a, 2 / a, -a, abs(b), a ** 2, a > b, (a > b) & (b > a),
                    a % 2]
        for result, want in zip(graph.compile()(a, b), expected):
            numpy.testing.assert_array_equal(numpy.asarray(result), want)
        with self.assertRaises(TypeError):
            x + 'one'  # pylint: disable=pointless-statement

    def test_ops_of_the_table(self):
        graph = self.context.graph()
        x = graph.parameter('f32', [2, 3])
        region = self.context.graph('larger')
        region.set_results(region.maximum(region.parameter('f32'), region.parameter('f32')))
        lowest = graph.scalar('f32', float('-inf'))
        weights = graph.constant(numpy.arange(6, dtype=numpy.float32).reshape(3, 2))
        graph.set_results(
            graph.reduce([x], [lowest], [1], region),
            graph.reduce_by(x, [0], 'product'),
            graph.dot(x, weights, lhs_contracting_dims=[1], rhs_contracting_dims=[0]),
            graph.slice(x, start=[0, 0], limit=[2, 3], stride=[1, 2]),
            graph.slice(x, [1, 0], [2, 2]),
            graph.pad(x, lowest, low=[1, 0], high=[0, -1]),
            graph.transpose(x, [1, 0]),
            graph.concatenate([x, x], [0]),
            graph.convert(x, 's32'),
            graph.compare(x, graph.negate(x), 'LT'),
            graph.not_(x > 0.0),
            graph.iota(1, 's32', [2, 2]),
            graph.get_tuple_element(graph.tuple([x, lowest]), 0))
        array = numpy.array([[1, -2, 3], [4, 5, -6]], numpy.float32)
        low = -numpy.inf
        expected = [array.max(1), array.prod(0), array @ numpy.arange(6).reshape(3, 2),
                    array[:, ::2], array[1:2, 0:2],
                    [[low, low], [1, -2], [4, 5]], array.T, numpy.concatenate([array, array]),
                    array.astype(int), array < -array, ~(array > 0), [[0, 1], [0, 1]], array]
        for result, want in zip(graph.compile()(array), expected):
            numpy.testing.assert_array_equal(numpy.asarray(result), want)
        self.assertIn('lhs_contracting_dims', str(inspect.signature(kiln.Graph.dot)))
        self.assertIn('contracting', kiln.Graph.dot.__doc__)

    def test_loops(self):
        """Doubles until the value is at least 100."""
        start = self.context.graph()
        x = start.parameter('s32', [], 'x')
        condition = self.context.graph('condition')
        condition.set_results(condition.parameter_like(x) < 100)
        body = self.context.graph('body')
        body.set_results(body.parameter_like(x) * 2)
        start.set_results(start.while_(x, condition, body))
        result, = start.compile()(numpy.int32(3))
        self.assertEqual(numpy.asarray(result), 192)

    def test_symbols(self):
        graph = self.context.graph()
        n = graph.symbol('n')
        x = graph.parameter('f32', [n], 'x')
        self.assertEqual(x.shape, kiln.Shape('f32', (n,), -1))
        graph.set_results(graph.reduce_by(x, [0]))
        with self.assertRaises(kiln.KilnError) as raised:
            graph.compile()
        self.assertEqual(raised.exception.code, kiln.Code.INVALID_ARGUMENT)
        for size in (3, 1000):
            result, = graph.compile(symbols={'n': size})(numpy.ones(size, numpy.float32))
            self.assertEqual(numpy.asarray(result), size)

    def test_text(self):
        graph = self.axpy()
        x = graph.parameters[1]
        self.assertIs(graph.find(x.name), x)
        self.assertIn('f32[5]', repr(x))
        graph.result.set_op_name('layer/add')
        hlo = graph.to_hlo_text()
        self.assertIn('layer/add', hlo)
        self.assertIn('digraph', graph.to_dot())
        again = self.context.graph_from_hlo_text(hlo)
        self.assertEqual(again.to_hlo_text(), hlo)
        with tempfile.TemporaryDirectory() as folder:
            again.compile(dump_folder=folder, verify=True, optimization='quick')
            with self.assertRaisesRegex(ValueError, "'fast'"):
                again.compile(optimization='fast')
            self.assertTrue(os.listdir(folder))
            again.compile(dump_folder=folder, dump_forms=['html', 'svg'])
            self.assertTrue(any(name.endswith('.passes.html') for name in os.listdir(folder)))
            with self.assertRaisesRegex(ValueError, "'png'"):
                again.compile(dump_folder=folder, dump_forms=['png'])

    def test_stablehlo(self):
        program = """
            func.func @sums(%x: tensor<?x2xf32>) -> tensor<?xf32> {
              %z = stablehlo.constant dense<0.0> : tensor<f32>
              %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
                : (tensor<?x2xf32>, tensor<f32>) -> tensor<?xf32>
              return %0 : tensor<?xf32>
            }
            func.func @nothing() { return }"""
        graph = self.context.graph_from_stablehlo(program, entry='sums',
                                                  arguments=[('f32', [3, 2])])
        result, = graph.compile()(numpy.arange(6, dtype='f4').reshape(3, 2))
        self.assertEqual(numpy.asarray(result).tolist(), [1, 5, 9])
        with self.assertRaisesRegex(kiln.KilnError, 'several that are public'):
            self.context.graph_from_stablehlo(program.encode())

    def test_errors_of_builders(self):
        graph = self.context.graph()
        x = graph.parameter('f32', [3])
        y = graph.parameter('f32', [4])
        with self.assertRaises(kiln.KilnError) as raised:
            graph.add(x, y)
        self.assertEqual(raised.exception.code, kiln.Code.INVALID_ARGUMENT)
        for piece in ('add', 'f32[3]', 'f32[4]'):
            self.assertIn(piece, raised.exception.message)
        self.assertTrue(str(raised.exception).startswith('INVALID_ARGUMENT: '))
        with self.assertRaises(kiln.KilnError):
            graph.check()
        with self.assertRaises(TypeError):
            graph.add(x)
        with self.assertRaises(ValueError):
            graph.compare(x, x, 'ABOUT')

    def test_memory_and_cost(self):
        executable = self.axpy().compile()
        memory = executable.memory
        self.assertEqual((memory.argument_bytes, memory.output_bytes), (44, 20))
        self.assertEqual(memory.peak_bytes, 64 + memory.temporary_bytes + memory.constant_bytes)
        self.assertGreater(memory.code_bytes, 0)
        self.assertEqual(executable.cost.flops, 10)
        self.assertEqual(executable.cost.transcendentals, 0)

    def test_errors_of_programs(self):
        executable = self.axpy().compile()
        with self.assertRaises(kiln.KilnError) as raised:
            executable(numpy.float32(1), numpy.zeros(5, numpy.float32), numpy.zeros(4, 'f4'))
        self.assertEqual(raised.exception.code, kiln.Code.INVALID_ARGUMENT)
        self.assertIn('f32[4]', raised.exception.message)
        with self.assertRaises(kiln.KilnError) as raised:
            self.context.device('TPU:0')
        self.assertEqual(raised.exception.code, kiln.Code.NOT_FOUND)
        with self.assertRaises(kiln.KilnError) as raised:
            self.context.graph_from_hlo_text('HloModule m\n\nnonsense')
        self.assertTrue(raised.exception.message.startswith('line '))

    def test_compiling_ends_early(self):
        cancel = kiln.Cancellation()
        cancel.set()
        for limits, code in (({'cancel': cancel}, kiln.Code.CANCELLED),
                             ({'timeout': 0}, kiln.Code.DEADLINE_EXCEEDED)):
            with self.assertRaises(kiln.KilnError) as raised:
                self.axpy().compile(**limits)
            self.assertEqual(raised.exception.code, code)
        self.axpy().compile(cancel=kiln.Cancellation(), timeout=600)

    def test_temporaries_have_a_limit(self):
        self.axpy().compile(memory_limit_bytes=1 << 30)
        with self.assertRaises(kiln.KilnError) as raised:
            self.axpy().compile(memory_limit_bytes=-1)
        self.assertEqual(raised.exception.code, kiln.Code.INVALID_ARGUMENT)

    def test_closed_objects_are_refused(self):
        graph = self.axpy()
        graph.close()
        graph.close()
        with self.assertRaises(ctypes.ArgumentError):
            graph.to_hlo_text()
        buffer = self.cpu.zeros('f32')
        with buffer:
            pass
        with self.assertRaises(ctypes.ArgumentError):
            buffer.tobytes()
        with self.assertRaises(ctypes.ArgumentError):
            self.axpy().compile()(buffer, buffer, buffer)

    def test_asynchronous(self):
        executable = self.axpy().compile()
        x = aligned(5)
        x[:] = 1
        first, event = executable.start([numpy.float32(2), x, x])
        second, last = executable.start([numpy.float32(2), first[0], first[0]])
        del first
        event.wait()
        self.assertTrue(event.ready)
        last.wait(60.0)
        self.assertEqual(numpy.asarray(second[0]).tolist(), [9] * 5)
        second[0].event().wait()
        with self.assertRaises(kiln.KilnError) as raised:
            event.on_ready(print)
        self.assertEqual(raised.exception.code, kiln.Code.FAILED_PRECONDITION)

    def test_callbacks(self):
        called = threading.Event()
        errors = []

        def callback(error):
            errors.append(error)
            called.set()

        with kiln.Context(threads=2, callbacks_from_any_thread=True) as context:
            graph = context.graph()
            graph.set_results(graph.parameter('f32', [3]) + 1.0)
            x = numpy.zeros(3, numpy.float32)
            _, event = graph.compile().start([x])
            alive = weakref.ref(callback)
            event.on_ready(callback)
            del callback
            self.assertTrue(called.wait(60))
            event.wait()
        self.assertEqual(errors, [None])
        # The library's thread lets go of it a moment after the call.
        deadline = time.monotonic() + 60
        while alive() is not None and time.monotonic() < deadline:
            time.sleep(0.001)
        self.assertIsNone(alive())

    def test_cancellation(self):
        graph = self.context.graph()
        x = graph.parameter('s32')
        condition = self.context.graph()
        condition.set_results(condition.parameter_like(x) >= 0)
        body = self.context.graph()
        body.set_results(body.parameter_like(x) * 1)
        graph.set_results(graph.while_(x, condition, body))
        cancel = kiln.Cancellation()
        timer = threading.Timer(0.05, cancel.set)
        timer.start()
        with self.assertRaises(kiln.KilnError) as raised:
            graph.compile().run([numpy.int32(1)], cancel=cancel)
        timer.join()
        self.assertEqual(raised.exception.code, kiln.Code.CANCELLED)

    def test_session(self):
        graph = self.axpy()
        a, x, y = graph.parameters
        session = kiln.Session(graph)
        arrays = {a: numpy.float32(2), x: numpy.full(5, 3, numpy.float32),
                  y: numpy.ones(5, numpy.float32)}
        self.assertGreater(session.prepare(list(arrays), [graph.result]).kernels, 1)
        out = aligned(5)
        result, = session.run(arrays, [graph.result], [self.cpu.borrow(out)])
        self.assertEqual(result.address, out.ctypes.data)
        self.assertEqual(out.tolist(), [7] * 5)
        with self.assertRaises(kiln.KilnError) as raised:
            session.run({a: numpy.float32(2)}, [graph.result])
        self.assertIn('x', raised.exception.message)

    def test_session_compiles_clusters(self):
        graph = self.context.graph('chain')
        x = graph.parameter('f32', [4], 'x')
        with graph.device('XLA_CPU:0'):
            y = graph.exponential(x) + x
        z = y * y - x
        arrays = {x: numpy.arange(4, dtype=numpy.float32)}
        expected = (numpy.exp(arrays[x]) + arrays[x]) ** 2 - arrays[x]
        for jit, kernels in [('off', 3), ('explicit', 3), ('on', 2)]:
            session = kiln.Session(graph, jit=jit, min_cluster_size=2)
            self.assertEqual(session.prepare([x], [z]).kernels, kernels)
            self.assertIn('XLA_CPU:0', session.explain([x], [z]))
            result, = session.run(arrays, [z])
            numpy.testing.assert_allclose(numpy.asarray(result), expected, rtol=1e-5)
        with self.assertRaises(ValueError):
            kiln.Session(graph, jit='sometimes')
        with self.assertRaises(kiln.KilnError) as raised:
            kiln.Session(graph, jit='on', ops_to_cluster=['nonsense']).explain([x], [z])
        self.assertIn('nonsense', raised.exception.message)

    def test_targets_and_traces_of_runs(self):
        graph = self.context.graph('targets')
        x = graph.parameter('f32', [4], 'x')
        with graph.device('XLA_CPU:0'):
            y = -x
        assigned = graph.assign(y * y, 'v')
        session = kiln.Session(graph)
        arrays = {x: numpy.arange(4, dtype=numpy.float32)}
        self.assertGreater(session.prepare([x], [], [assigned]).kernels, 1)
        self.assertIn('(multiply)', session.explain([x], [], [assigned]))
        with self.context.run_trace() as trace:
            self.assertEqual(session.run(arrays, [], targets=[assigned], trace=trace), [])
        numpy.testing.assert_array_equal(numpy.asarray(session.variable('v')), arrays[x] ** 2)
        rows = {(row.op, row.device, row.kind): row for row in trace.metadata()}
        for key in [('CPU:0 to XLA_CPU:0', 'CPU:0', 'transfer'),
                    ('XLA_CPU:0 to CPU:0', 'XLA_CPU:0', 'transfer')]:
            self.assertEqual((rows[key].occurrences, rows[key].bytes), (1, 16))
        self.assertIn('"cat": "kernel"', trace.to_json())
        self.assertIn(b'/device:CUSTOM:Kiln XLA_CPU:0', trace.to_xspace())

    def test_function(self):
        graph = self.context.graph('rows')
        n = graph.symbol('n')
        x = graph.parameter('f32', [n, 3], 'x')
        y = graph.parameter('f32', [n], 'y')
        graph.set_results(graph.reduce_by(x, [1]) * y, x)
        function = kiln.Function(graph, max_programs=2)
        for rows in [2, 5, 2, 7, 5]:
            a = numpy.random.rand(rows, 3).astype(numpy.float32)
            b = numpy.random.rand(rows).astype(numpy.float32)
            sums, same = function(a, b)
            numpy.testing.assert_allclose(numpy.asarray(sums), a.sum(1) * b, rtol=1e-5)
            numpy.testing.assert_array_equal(numpy.asarray(same), a)
        self.assertGreater(function.info.evictions, 0)
        with self.assertRaises(kiln.KilnError) as raised:
            function(numpy.zeros((2, 3), numpy.float32), numpy.zeros(3, numpy.float32))
        self.assertEqual(raised.exception.code, kiln.Code.INVALID_ARGUMENT)
        whole = kiln.Function(graph, must_compile=True)
        whole(numpy.zeros((4, 3), numpy.float32), numpy.zeros(4, numpy.float32))
        self.assertEqual(whole.info.compiles, 1)

    def test_the_reference_agrees(self):
        arrays = [numpy.float32(0.1), numpy.linspace(0, 1, 5, dtype=numpy.float32),
                  numpy.linspace(2, 3, 5, dtype=numpy.float32)]
        graph = self.axpy()
        results = [graph.compile(device)(*arrays)[0].tobytes()
                   for device in (self.cpu, self.context.device('REFERENCE'))]
        numpy.testing.assert_allclose(*(numpy.frombuffer(r, numpy.float32) for r in results),
                                      rtol=1e-6)

    def test_context(self):
        self.assertEqual(self.context.threads, 2)
        self.assertIn('CPU:0', [device.name for device in self.context.devices])
        self.assertEqual(repr(self.cpu), '<kiln.Device CPU:0>')
        self.assertTrue(self.cpu.description)
        before = self.context.memory.live_bytes
        buffer = self.cpu.zeros('f32', [1000])
        self.assertGreaterEqual(self.context.memory.live_bytes, before + 4000)
        buffer.close()
        self.assertEqual(self.context.memory.live_bytes, before)
        with self.assertRaises(kiln.KilnError):
            kiln.Context(threads=-1)
        log = []
        kiln.Context(log=lambda level, message: log.append((level, message))).close()

    def test_disk_cache(self):
        def double(context):
            graph = context.graph('double')
            x = graph.parameter('f32', [3], 'x')
            graph.set_results(x + x)
            result, = graph.compile()(numpy.float32([1, 2, 3]))
            self.assertEqual(numpy.asarray(result).tolist(), [2, 4, 6])

        self.assertEqual(self.context.disk_cache.limit_bytes, 0)
        with tempfile.TemporaryDirectory() as folder:
            for hits in (0, 1):
                with kiln.Context(threads=1, cache_folder=folder, cache_bytes=10**6) as context:
                    double(context)
                    info = context.disk_cache
                    self.assertEqual((info.hits, info.misses, info.written, info.failed),
                                     (hits, 1 - hits, 1 - hits, 0))
                    self.assertEqual(info.limit_bytes, 10**6)
                    self.assertGreater(info.folder_bytes, 4096)
            with kiln.Context(threads=1, cache_folder=folder, cache_bytes=-1) as context:
                double(context)
                self.assertEqual(context.disk_cache.hits, 0)

    def test_several_cpu_devices(self):
        with kiln.Context(threads=5, cpu_devices=2, gpu='OFF') as context:
            self.assertEqual([(device.name, device.threads) for device in context.devices],
                             [('CPU:0', 3), ('CPU:1', 2), ('XLA_CPU:0', 3), ('XLA_CPU:1', 2),
                              ('REFERENCE:0', 3)])
            self.assertEqual(context.threads, 5)
            first, second = context.device('CPU'), context.device('cpu:1')
            graph = context.graph('twice')
            x = graph.parameter('f32', [4], 'x')
            graph.set_results(x + x)
            twice = [graph.compile(device) for device in (first, second)]
            values = numpy.arange(4, dtype=numpy.float32)
            buffer = first.copy(values)
            moved = buffer.to(second)
            self.assertEqual(moved.device.name, 'CPU:1')
            self.assertEqual(twice[1](moved)[0].tolist(), [0, 2, 4, 6])
            self.assertEqual(twice[0](buffer)[0].tolist(), [0, 2, 4, 6])
            with self.assertRaises(kiln.KilnError) as raised:
                twice[1](buffer)
            self.assertIn('is on CPU:0; expected CPU:1', raised.exception.message)
        with self.assertRaises(kiln.KilnError):
            kiln.Context(cpu_devices=-1)

    def test_trace(self):
        with self.context.trace() as trace:
            self.axpy().compile()(numpy.float32(1), numpy.zeros(5, 'f4'), numpy.zeros(5, 'f4'))
        events = json.loads(trace.to_json())['traceEvents']
        self.assertTrue(any('name' in event for event in events))

    def test_calls_functions(self):
        seen = []

        def norm(call):
            x = numpy.asarray(call.operands[0])
            unit, length = (numpy.asarray(result) for result in call.results)
            seen.append((call.target, call.backend_config, call.operands[0].shape))
            with self.assertRaises(ValueError):
                x[0] = 1  # operands are for reading
            length[...] = numpy.sqrt((x * x).sum())
            unit[...] = x / length

        self.context.register_call('norm', norm)
        for device in ('CPU:0', 'REFERENCE:0'):
            graph = self.context.graph()
            x = graph.parameter('f32', [2])
            pair = graph.custom_call('norm', [-x], [('f32', [2]), ('f32', [])], 'L2')
            graph.set_results(graph.get_tuple_element(pair, 0), graph.get_tuple_element(pair, 1))
            executable = graph.compile(self.context.device(device))
            unit, length = executable(numpy.array([3, 4], numpy.float32))
            numpy.testing.assert_allclose(numpy.asarray(unit), [-0.6, -0.8], rtol=1e-6)
            self.assertEqual(numpy.asarray(length).tolist(), 5)
            self.assertEqual(seen.pop(), ('norm', 'L2', kiln.Shape('f32', (2,), 8)))

    def test_calls_with_attributes_and_layouts(self):
        seen = []

        def turn(call):
            seen.append(call.attributes)
            x, y = numpy.asarray(call.operands[0]), numpy.asarray(call.results[0])
            self.assertTrue(x.flags.f_contiguous and y.flags.c_contiguous)
            y[...] = x.T

        self.context.register_call('turn', turn)
        for device in ('CPU:0', 'REFERENCE:0'):
            graph = self.context.graph_from_stablehlo('''
                func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
                  %0 = stablehlo.custom_call @turn(%x) {api_version = 4 : i32,
                    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
                    result_layouts = [dense<[1, 0]> : tensor<2xindex>],
                    backend_config = {a = 3 : i32, b = [1.5, 2.5], c = {d = true, e = "text"}}
                  } : (tensor<2x3xf32>) -> tensor<3x2xf32>
                  return %0 : tensor<3x2xf32>
                }''')
            x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
            y, = graph.compile(self.context.device(device))(x)
            numpy.testing.assert_array_equal(y, x.T)
            self.assertEqual(seen.pop(), {'a': 3, 'b': [1.5, 2.5],
                                          'c': {'d': True, 'e': b'text'}})

    def test_functions_that_fail(self):
        def refuse(call):
            if call.backend_config == 'kiln':
                raise kiln.KilnError(kiln.Code.OUT_OF_RANGE, 'too far')
            raise ValueError('not today')

        self.context.register_call('refuse', refuse)
        with self.assertRaises(kiln.KilnError) as caught:
            self.context.register_call('refuse', refuse)
        self.assertEqual(caught.exception.code, kiln.Code.ALREADY_EXISTS)
        for config, code, message in (('kiln', 'OUT_OF_RANGE', 'too far'),
                                      ('', 'UNKNOWN', 'ValueError: not today')):
            graph = self.context.graph()
            x = graph.parameter('f32', [2])
            graph.set_results(graph.custom_call('refuse', [x], [('f32', [2])], config))
            with self.assertRaises(kiln.KilnError) as caught:
                graph.compile()(numpy.zeros(2, numpy.float32))
            self.assertEqual(caught.exception.code, kiln.Code[code])
            self.assertIn(message, caught.exception.message)

    def test_functions_go_with_what_can_call_them(self):
        class Function:
            def __call__(self, call):
                numpy.asarray(call.results[0])[...] += 1

        function = Function()
        gone = weakref.ref(function)
        with kiln.Context(threads=1) as context:
            context.register_call('increment', function)
            del function
            graph = context.graph()
            x = graph.parameter('f32', [2])
            graph.set_results(graph.custom_call('increment', [x], [('f32', [2])], aliases=[0]))
            executable = graph.compile()
            graph.close()
        self.assertIsNotNone(gone())
        result, = executable(numpy.zeros(2, numpy.float32))
        self.assertEqual(numpy.asarray(result).tolist(), [1, 1])
        del result
        executable.close()
        gc.collect()
        self.assertIsNone(gone())

    def test_objects_outlive_their_context(self):
        with kiln.Context(threads=1) as context:
            graph = context.graph()
            graph.set_results(graph.parameter('f32', [2]) * 2.0)
            executable = graph.compile()
        result, = executable(numpy.ones(2, numpy.float32))
        self.assertEqual(numpy.asarray(result).tolist(), [2, 2])


if __name__ == '__main__':
    unittest.main()
