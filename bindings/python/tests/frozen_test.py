"""Frozen arguments: bound once, by number or name."""

import threading
import unittest

import numpy

import kiln


class FrozenTest(unittest.TestCase):

    def setUp(self):
        self.context = kiln.Context(threads=1)

    def tearDown(self):
        self.context.close()

    def layer(self, frozen):
        graph = self.context.graph('layer')
        x = graph.parameter('f32', [4, 8], 'x')
        w = graph.parameter('f32', [8, 6], 'layer.w')
        b = graph.parameter('f32', [4, 6], 'layer.b')
        graph.set_results(x @ w + b)
        return graph.compile(frozen=frozen)

    def test_binding(self):
        x = numpy.arange(32, dtype='f4').reshape(4, 8)
        w = numpy.arange(48, dtype='f4').reshape(8, 6) % 5
        b = numpy.ones((4, 6), 'f4')
        for frozen, taken in ((['layer.*'], 1), ([1, 'layer.b'], 1), (['layer.w'], 2), ([], 3)):
            executable = self.layer(frozen)
            self.assertEqual(executable.frozen, list(range(1, 3))[:3 - taken])
            self.assertEqual(executable.argument_names, ['x', 'layer.w', 'layer.b'])
            rest = (x, w, b) if taken == 3 else (x, b)[:taken]
            for scale in (1, 3) if taken < 3 else (1,):
                if taken < 3:
                    executable.bind({'layer.w': w * scale})
                if taken == 1:
                    executable.bind({2: self.context.device('CPU:0').copy(b * scale)})
                want = x @ (w * scale) + (b * scale if taken == 1 else b)
                for result in (executable(*rest), executable.run(rest), executable.start(rest)[0]):
                    numpy.testing.assert_array_equal(numpy.asarray(result[0]), want)

    def test_filter(self):
        """A filter whose transform is taken when it is bound."""
        random = numpy.random.default_rng(1)
        x = random.normal(size=(1, 16, 16, 64)).astype('f4')
        graph = self.context.graph('filter')
        values = [graph.parameter('f32', list(x.shape)), graph.parameter('f32', [64, 64, 3, 3], 'w')]
        graph.set_results(graph.convolution(*values, [3, 3], 'b01f_oi01->b01f', padding_low=[1, 1],
                                            padding_high=[1, 1]))
        transformed = graph.compile(frozen=['w'])
        plain = graph.compile(frozen=['w'], disabled_passes=['transform-convolutions'])
        for _ in range(2):
            w = random.normal(size=(64, 64, 3, 3)).astype('f4')
            results = []
            for executable in (transformed, plain):
                executable.bind({'w': w})
                results.append(numpy.asarray(executable(x)[0]))
            numpy.testing.assert_allclose(*results, atol=1e-3)
            self.assertTrue((results[0] != results[1]).any())

    def test_memory(self):
        memory = self.layer(['*.w', '*.b']).memory
        self.assertGreaterEqual(memory.frozen_bytes, (48 + 24) * 4)
        self.assertEqual(memory.argument_bytes, 32 * 4)

    def test_errors(self):
        executable = self.layer(['layer.*'])
        x = numpy.zeros((4, 8), 'f4')
        with self.assertRaisesRegex(kiln.KilnError, "argument 1 'layer.w' is frozen and has not"):
            executable(x)
        with self.assertRaisesRegex(kiln.KilnError, "no argument 'layer.c'"):
            executable.bind({'layer.c': x})
        with self.assertRaisesRegex(kiln.KilnError, "argument 0 'x' is not frozen"):
            executable.bind({'x': x})
        with self.assertRaisesRegex(kiln.KilnError, r"'layer.w' is f32\[4,8\]"):
            executable.bind({1: x})
        with self.assertRaisesRegex(kiln.KilnError, "no argument 'w'"):
            self.layer(['w'])

    def test_threads(self):
        executable = self.layer(['layer.*'])
        x = numpy.ones((4, 8), 'f4')
        wrong = []

        def bind(value):
            executable.bind({1: numpy.full((8, 6), value, 'f4'),
                             2: numpy.full((4, 6), value, 'f4')})

        def run():
            for _ in range(200):
                result = numpy.asarray(executable(x)[0])
                if (result != result[0, 0]).any() or result[0, 0] % 9:
                    wrong.append(result.copy())

        bind(1)
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for value in range(2, 50):
            bind(value)
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == '__main__':
    unittest.main()
