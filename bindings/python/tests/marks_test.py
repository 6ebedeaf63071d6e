"""Scopes of graphs and marks of values."""

import unittest

import numpy

import kiln


class MarksTest(unittest.TestCase):

    def setUp(self):
        self.context = kiln.Context(threads=1)
        self.graph = self.context.graph('marks')
        self.x = self.graph.parameter('f32', [4], 'x')

    def tearDown(self):
        self.context.close()

    def attributes(self, value):
        return [value.frontend_attribute(key) for key in ('_XlaCompile', '_XlaScope')]

    def test_devices(self):
        with self.graph.device('GPU:0'):
            y = self.x + 1
            with self.graph.device(None):
                z = -y
            w = -z
        self.assertEqual([v.device for v in (self.x, y, z, w)], [None, 'GPU:0', None, 'GPU:0'])
        w.device = 'cpu'
        self.assertEqual(w.device, 'cpu')
        w.device = None
        self.assertIsNone(w.device)
        with self.assertRaisesRegex(kiln.KilnError, "'no device' names no device"):
            w.device = 'no device'

    def test_compilation(self):
        scope = self.graph.jit_scope()
        with scope:
            y = -self.x
            with self.graph.jit_scope(False):
                z = -y
        with scope:
            w = -z
        self.assertEqual(self.attributes(y), ['true', 'jit_scope_0'])
        self.assertEqual(self.attributes(z), ['false', 'jit_scope_0'])
        self.assertEqual(self.attributes(w), ['true', 'jit_scope_1'])
        y.set_jit(False)
        self.assertEqual(self.attributes(y), ['false', 'jit_scope_0'])
        y.set_jit(None)
        self.assertEqual(self.attributes(y), [None, None])
        y.set_jit(True)
        self.assertEqual(self.attributes(y), ['true', None])

    def test_names(self):
        with self.graph.name_scope('layer'):
            y = -self.x
            with self.graph.name_scope('inner'):
                z = -y
        self.assertEqual([v.op_name for v in (self.x, y, z)],
                         ['', 'layer/negate', 'layer/inner/negate'])
        self.assertIs(self.graph.find('layer/inner/negate:0'), z)

    def test_control_dependencies(self):
        y = self.graph.tanh(self.x)
        with self.graph.control_dependencies([y]):
            z = -self.x
            with self.graph.control_dependencies(None):
                w = abs(self.x)
        self.graph.add_control_dependency(w, y)
        self.graph.set_results(z)
        text = self.graph.to_hlo_text()
        self.assertIn('negate(%x), control-predecessors={%tanh}\n', text)
        self.assertIn('abs(%x)\n', text)
        self.assertIn('tanh(%x), control-predecessors={%abs}\n', text)
        with self.assertRaisesRegex(kiln.KilnError, 'needs it'):
            self.graph.add_control_dependency(z, w)

    def test_other_attributes(self):
        self.x.set_frontend_attribute('key', 'a "text"')
        self.assertEqual(self.x.frontend_attribute('key'), 'a "text"')
        self.x.set_frontend_attribute('key', None)
        self.assertIsNone(self.x.frontend_attribute('key'))
        callee = self.context.graph()
        callee.set_results(-callee.parameter('f32', [4]))
        y = self.graph.call([self.x], callee)
        y.set_must_compile()
        self.assertEqual(y.frontend_attribute('_XlaMustCompile'), 'true')
        with self.assertRaisesRegex(kiln.KilnError, 'expected a call'):
            self.x.set_must_compile()

    def test_mistakes_inside_are_told(self):
        with self.assertRaisesRegex(kiln.KilnError, 'add: operands have shapes'):
            with self.graph.device('GPU:0'), self.graph.name_scope('layer'):
                self.graph.add(self.x, self.graph.parameter('f32', [5]))
        other = self.context.graph()
        with self.assertRaisesRegex(ValueError, 'mine'):
            with other.device('GPU:0'):
                raise ValueError('mine')
        self.assertIsNone(other.parameter('f32').device)
        with self.assertRaisesRegex(kiln.KilnError, 'names no device'):
            with other.device('?'):
                self.fail('the scope was entered')

    def test_a_whole_graph_ignores_them(self):
        with self.graph.device('GPU:7'), self.graph.jit_scope(False):
            y = numpy.exp(self.x) * 2
        self.graph.set_results(y)
        result, = self.graph.compile()(numpy.zeros(4, numpy.float32))
        numpy.testing.assert_array_equal(numpy.asarray(result), numpy.full(4, 2, numpy.float32))


if __name__ == '__main__':
    unittest.main()
