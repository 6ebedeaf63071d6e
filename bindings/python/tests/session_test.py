"""Sessions: options, placement, variables, and the ends of runs."""

import os
import tempfile
import threading
import unittest
import unittest.mock

import numpy

import kiln

F32 = numpy.float32


class SessionTest(unittest.TestCase):

    def setUp(self):
        self.log = []
        self.context = kiln.Context(threads=2, log=lambda level, line: self.log.append(line),
                                    log_level='info')
        self.addCleanup(self.context.close)
        self.graph = self.context.graph('chain')
        self.x = self.graph.parameter('f32', [4], 'x')
        self.y = numpy.tanh(self.x * self.x + self.x) - self.x

    def explanation(self, y=None, **options):
        session = kiln.Session(self.graph, **options)
        return session.explain([self.x], [self.y if y is None else y])

    def test_what_is_clustered(self):
        self.assertEqual(self.explanation().count('in cluster_0'), 0)
        self.assertEqual(self.explanation(jit='on').count('in cluster_0'), 4)
        self.assertEqual(self.explanation(jit='on', cpu_clustering=False).count('cluster_'), 0)
        self.assertIn('smaller than 5', self.explanation(jit='on', min_cluster_size=5))
        text = self.explanation(jit='on', min_cluster_size=1, max_cluster_size=2)
        self.assertEqual((text.count('in cluster_0'), text.count('in cluster_1')), (2, 2))
        text = self.explanation(jit='on', min_cluster_size=1, cluster_fuel=3)
        self.assertEqual((text.count('in cluster_0'), text.count('no fuel left')), (3, 1))
        self.assertEqual(self.explanation(jit='on', min_cluster_size=1, cluster_fuel=0).count(
            'no fuel left'), 4)
        text = self.explanation(jit='on', min_cluster_size=1, ops_to_cluster=['add', 'multiply'])
        self.assertIn('op not in the list of ops to cluster: tanh', text)
        text = self.explanation(jit='on', min_cluster_size=1, cluster_exclude_ops=['tanh'])
        self.assertIn('op excluded from clusters: tanh', text)

    def test_looks_inside(self):
        session = kiln.Session(self.graph, jit='on')
        dot = session.to_dot([self.x], [self.y])
        self.assertTrue(dot.startswith('digraph "chain"'))
        self.assertIn('label="cluster_0 on CPU:0"', dot)
        info = session.prepare([self.x], [self.y])
        self.assertEqual(info.kernels, 1)
        self.assertGreater(info.compile_microseconds, 0)
        self.assertEqual(repr(session), '<kiln.Session on CPU:0>')

    def test_devices(self):
        with self.graph.device('XLA_CPU:7'):
            z = -self.y
        array = numpy.ones(4, F32)
        with self.assertRaisesRegex(kiln.KilnError, 'XLA_CPU:7, and there is no such device'):
            kiln.Session(self.graph).run({self.x: array}, [z])
        result, = kiln.Session(self.graph, soft_placement=True).run({self.x: array}, [z])
        self.assertEqual(result.device.name, 'XLA_CPU:0')
        self.assertTrue(any('soft placement' in line for line in self.log), self.log)
        session = kiln.Session(self.graph, self.context.device('XLA_CPU'))
        result, = session.run({self.x: array}, [self.y])
        self.assertEqual(result.device.name, 'XLA_CPU:0')

    def test_how_clusters_are_compiled(self):
        graph = self.context.graph('rows')
        x = graph.parameter('f32', [graph.symbol('n')], 'x')
        y = numpy.tanh(x * x + x) * x - 1
        for options in ({}, {'lazy': True}, {'asynchronous_compilation': True}, {'strict': True}):
            session = kiln.Session(graph, jit='on', **options)
            for n in (3, 5, 6, 6, 3):
                array = numpy.linspace(-1, 1, n, dtype=F32)
                result, = session.run({x: array}, [y])
                numpy.testing.assert_allclose(
                    result, numpy.tanh(array * array + array) * array - 1, rtol=1e-5, atol=1e-6)
        for other in ('lazy', 'asynchronous_compilation'):
            with self.assertRaisesRegex(kiln.KilnError, 'strict is 1, and so is ' + other):
                kiln.Session(graph, strict=True, **{other: True})

    def test_strict_sessions_fall_back_on_nothing(self):
        with unittest.mock.patch.dict(os.environ, KILN_FLAGS='--disabled_passes=expand-complex'):
            context = kiln.Context(threads=1, log=lambda level, line: self.log.append(line))
        with context:
            graph = context.graph()
            x = graph.parameter('c64', [2])
            y = x * x * x * x * x
            array = numpy.array([1j, 2], numpy.complex64)
            result, = kiln.Session(graph, jit='on').run({x: array}, [y])
            numpy.testing.assert_allclose(result, array ** 5)
            self.assertTrue(any('runs op by op' in line for line in self.log), self.log)
            with self.assertRaisesRegex(kiln.KilnError, 'multiply'):
                kiln.Session(graph, jit='on', strict=True).run({x: array}, [y])

    def test_variables(self):
        graph = self.graph
        total = graph.assign_add(self.x, 'total')
        steps = graph.assign_add(graph.scalar('s32', 1), 'steps')
        session = kiln.Session(graph)
        self.assertEqual(session.variables, ['steps', 'total'])
        with self.assertRaises(kiln.KilnError) as raised:
            session.variable('total')
        self.assertEqual(raised.exception.code, kiln.Code.FAILED_PRECONDITION)
        session.set_variable('total', numpy.zeros(4, F32))
        session.set_variable('steps', self.context.device().copy(numpy.int32(0)))
        array = numpy.arange(4, dtype=F32)
        before = session.variable('total')
        for i in range(3):
            result, count = session.run({self.x: array}, [total, steps])
            numpy.testing.assert_array_equal(result, (i + 1) * array)
            self.assertEqual(int(count), i + 1)
        self.assertEqual(numpy.asarray(before).tolist(), [0] * 4)
        self.assertEqual(numpy.asarray(session.variable('total')).tolist(), [0, 3, 6, 9])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'variables.safetensors')
            session.save(path)
            other = kiln.Session(graph)
            other.restore(path)
            self.assertEqual(int(other.variable('steps')), 3)
            self.assertEqual(numpy.asarray(other.variable('total')).tolist(), [0, 3, 6, 9])
            with self.assertRaises(kiln.KilnError):
                other.restore(os.path.join(folder, 'missing'))
        for name, value, code in (('total', numpy.zeros(4), 'INVALID_ARGUMENT'),
                                  ('other', numpy.zeros(4, F32), 'NOT_FOUND')):
            with self.assertRaises(kiln.KilnError) as raised:
                session.set_variable(name, value)
            self.assertEqual(raised.exception.code.name, code)

    def endless(self):
        """A graph whose run does not end if its argument is not 0."""
        graph = self.context.graph('endless')
        x = graph.parameter('s32', [], 'x')
        goes_on, step = self.context.graph(), self.context.graph()
        goes_on.set_results(goes_on.parameter('s32') != 0)
        step.set_results(step.parameter('s32') * 1)
        graph.set_results(graph.while_(x, goes_on, step))
        return graph

    def test_runs_that_do_not_end(self):
        graph = self.endless()
        x, y = graph.parameters[0], graph.result
        session = kiln.Session(graph)
        function = kiln.Function(graph)
        for run in (lambda **options: session.run({x: 1}, [y], **options),
                    lambda **options: function.run([1], **options)):
            with self.assertRaises(kiln.KilnError) as raised:
                run(timeout=0.05)
            self.assertEqual(raised.exception.code, kiln.Code.DEADLINE_EXCEEDED)
            cancel = kiln.Cancellation()
            timer = threading.Timer(0.05, cancel.set)
            timer.start()
            with self.assertRaises(kiln.KilnError) as raised:
                run(cancel=cancel)
            timer.join()
            self.assertEqual(raised.exception.code, kiln.Code.CANCELLED)
        self.assertEqual(int(session.run({x: 0}, [y])[0]), 0)
        self.assertEqual(int(function.run([0], timeout=60)[0]), 0)

    def test_statistics_of_functions(self):
        graph = self.context.graph('rows')
        x = graph.parameter('f32', [graph.symbol('n')], 'x')
        graph.set_results(numpy.tanh(x * x + x) * x - 1)
        function = kiln.Function(graph, max_programs=2, lazy=True)
        for n in (3, 4, 4, 5, 3):
            function(numpy.ones(n, F32))
        info = function.info
        self.assertEqual(info, kiln.FunctionInfo(calls=5, compiles=2, fallbacks=3, evictions=2,
                                                 programs=2))


if __name__ == '__main__':
    unittest.main()
