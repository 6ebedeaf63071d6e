"""Functions of arrays whose sizes change: traced with symbols, or for each size."""

import sys
import threading
import unittest
import unittest.mock

import numpy

import kiln

F32 = numpy.float32


class SizesTest(unittest.TestCase):
    """Of graphs compiled as a whole."""

    must_compile = True

    @classmethod
    def setUpClass(cls):
        cls.context = kiln.Context(threads=2)

    @classmethod
    def tearDownClass(cls):
        cls.context.close()

    def check(self, result, wanted):
        self.assertIsInstance(result, kiln.Buffer)
        numpy.testing.assert_array_equal(numpy.asarray(result), wanted)
        self.assertEqual(result.dtype, numpy.asarray(wanted).dtype)

    def traced(self, function, **options):
        """The function compiled, and a list of the shapes that it was called with."""
        calls = []

        def counted(*args):
            calls.append(' '.join(repr(arg.shape) for arg in args))
            return function(*args)

        return kiln.jit(counted, context=self.context, must_compile=self.must_compile,
                        **options), calls

    def test_sizes_that_change_are_symbols(self):
        w = numpy.arange(12, dtype=F32).reshape(4, 3)
        layer, calls = self.traced(lambda x, w: (numpy.maximum(x @ w - 5, 0).reshape(-1), x.mean(0)))
        for n in (3, 5, 7, 2, 5, 3):
            x = numpy.arange(4 * n, dtype=F32).reshape(n, 4)
            result, mean = layer(x, w)
            self.check(result, numpy.maximum(x @ w - 5, 0).reshape(-1))
            numpy.testing.assert_allclose(mean, x.mean(0), rtol=1e-6)
        self.assertEqual(calls, ['f32[3,4] f32[4,3]', 'f32[n0,4] f32[4,3]'])
        self.assertEqual(layer.cache_info(), kiln.CacheInfo(2, 4, 64, 4))
        # Other dimensions change later, and numbers and types are of the structure.
        for n in (3, 6, 8):
            x, other = numpy.ones((n, n), F32), numpy.ones((n, 3), F32)
            self.check(layer(x, other)[0], numpy.full(3 * n, n - 5 if n > 5 else 0, F32))
        self.assertEqual(calls[2:], ['f32[n0,n1] f32[n1,3]'])
        layer(numpy.ones((2, 4)), numpy.ones((4, 3)))
        self.assertEqual(calls[3:], ['f64[2,4] f64[4,3]'])

    def test_equal_sizes_are_one_symbol_until_they_differ(self):
        outer, calls = self.traced(lambda x, y: x[:, None] * y)
        for n, m in ((3, 3), (5, 5), (4, 4), (4, 6), (7, 2), (6, 6)):
            x, y = numpy.arange(n, dtype=F32), numpy.arange(m, dtype=F32)
            self.check(outer(x, y), x[:, None] * y)
        self.assertEqual(calls, ['f32[3] f32[3]', 'f32[n0] f32[n0]', 'f32[n0] f32[n1]'])
        # Where they must be equal they stay one symbol.
        add, calls = self.traced(lambda x, y: x + y)
        for n, m in ((3, 3), (5, 5), (4, 4), (4, 1), (1, 6), (6, 6), (0, 0)):
            x, y = numpy.arange(n, dtype=F32), numpy.ones(m, F32)
            self.check(add(x, y), x + y)
        self.assertEqual(calls, ['f32[3] f32[3]', 'f32[n0] f32[n0]', 'f32[4] f32[1]',
                                 'f32[1] f32[6]', 'f32[0] f32[0]'])
        with self.assertRaisesRegex(ValueError, r'f32\[4\] and f32\[6\]: the dimensions do not go'):
            add(numpy.ones(4, F32), numpy.ones(6, F32))

    def test_what_a_function_sees_of_sizes(self):
        rows, calls = self.traced(lambda x: x * 10 if x.shape[0] == 6 or 2 * x.shape[0] + 1 == 9
                                  else -x)
        for n in (3, 6, 5, 8, 4, 7):
            x = numpy.arange(n, dtype=F32)
            self.check(rows(x), x * 10 if n in (4, 6) else -x)
        self.assertEqual(calls, ['f32[3]', 'f32[n0]', 'f32[6]', 'f32[4]'])
        # Whatever needs the number is traced for each.
        def swallow(x):
            try:
                return x * F32(len(x))
            except TypeError:
                return x * 0

        for function in (lambda x: sum(x[i] for i in range(x.shape[0])), swallow,
                         lambda x: x / F32(x.shape[0]), lambda x: x if x.shape[0] > 5 else -x,
                         lambda x: x * {3: 1, 5: 2, 6: 3, 8: 4}[x.shape[0]], lambda x: x[::-1],
                         lambda x: x + numpy.arange(x.shape[0], dtype=F32),
                         lambda x: x * F32(numpy.shape(x)[0] if isinstance(x, numpy.ndarray)
                                           else x.shape.byte_size / 4),
                         lambda x: (x, x.shape[0]), lambda x: x * x.shape[0]):
            traced, calls = self.traced(function)
            for n in (3, 5, 6, 8, 6):
                x = numpy.arange(n, dtype=F32)
                wanted = function(x)
                result = traced(x)
                if n == 6:
                    wanted, result = ((wanted, result) if isinstance(wanted, tuple)
                                      else ((wanted,), (result,)))
                    numpy.testing.assert_array_equal(result[0], wanted[0])
                    self.assertEqual(list(map(int, result[1:])), list(wanted[1:]))
            self.assertEqual(len(calls), 5)
            self.assertEqual([call for call in calls if 'n0' not in call],
                             ['f32[3]', 'f32[5]', 'f32[6]', 'f32[8]'])

    def test_slices_are_cut_off_as_for_numbers(self):
        def pieces(x):
            return x[:4], x[-3:], x[2:], x[1:-1]

        traced, calls = self.traced(pieces)
        for n in (8, 9, 3, 5, 2, 12, 3):
            x = numpy.arange(n, dtype=F32)
            for result, wanted in zip(traced(x), pieces(x)):
                self.check(result, wanted)
        self.assertEqual(calls, ['f32[8]', 'f32[n0]', 'f32[3]', 'f32[2]'])

    def test_symbols_change_no_bit(self):
        nn = kiln.nn
        functions = [
            lambda x: nn.softmax(x), lambda x: nn.layer_norm(x, axis=0), lambda x: nn.rms_norm(x),
            lambda x: (x.mean(), x.mean(0), x.mean(1, keepdims=True), nn.mean(x)),
            lambda x: (nn.variance(x, 0, ddof=1), nn.argmax(x), nn.argmin(x, 0), nn.gelu(x)),
            lambda x: (x.max(0), x.sum(1), x.prod(), x.any(), x.astype('s32').mean()),
            lambda x: (x @ x.T, x.T @ x, x.T.reshape(2, -1), x.ravel(), x[:, None] // x[None] % 3),
            lambda x: nn.take(x, (x[:, 0] * 0).astype('s32') + 1, 0),
            lambda x: nn.attention(x.reshape(-1, 2, 3), x.reshape(-1, 2, 3), x.reshape(-1, 2, 3),
                                   is_causal=True),
            lambda x: (numpy.concatenate([x, 2 * x]) if isinstance(x, numpy.ndarray)
                       else x.graph.concatenate([x, 2 * x], [0]))]
        for function in functions:
            traced, calls = self.traced(lambda x: function(x))
            for n in (4, 5, 9, 64):
                x = numpy.sin(numpy.arange(6 * n, dtype=F32)).reshape(n, 6) + 1
                results = traced(x)
                wanted = self.traced(lambda x: function(x))[0](x)
                if isinstance(results, kiln.Buffer):
                    results, wanted = (results,), (wanted,)
                for result, other in zip(results, wanted):
                    self.check(result, numpy.asarray(other))
            self.assertEqual(calls, ['f32[4,6]', 'f32[n0,6]'])

    def test_errors_of_functions_with_symbols(self):
        fail = []

        def sometimes(x, y):
            if fail:
                raise fail[0]
            return x @ y

        product, calls = self.traced(sometimes)
        x = numpy.ones((3, 3), F32)
        self.check(product(x, x), x @ x)
        fail.append(ValueError('mine'))
        with self.assertRaisesRegex(ValueError, 'mine'):
            product(numpy.ones((4, 3), F32), x)
        with self.assertRaises(ValueError):
            product(numpy.ones((3, 4), F32), x)
        fail.clear()
        self.assertEqual(product.cache_info().currsize, 1)
        tried = len(calls)
        for n in (4, 5, 4):
            self.check(product(numpy.ones((n, 3), F32), x), numpy.full((n, 3), 3, F32))
        self.assertEqual(calls[tried:], ['f32[n0,3] f32[3,3]'])

    def test_functions_with_symbols_in_threads(self):
        add, calls = self.traced(lambda x, y: x + y, max_programs=5)
        wrong = []

        def work(seed):
            for i in range(30):
                n = 2 + (i * seed) % 9
                x = numpy.full(n, i, F32)
                if numpy.asarray(add(x, seed)).tolist() != [i + seed] * n:
                    wrong.append((seed, i))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(add.cache_info().currsize, 5)
        self.assertEqual(len([call for call in calls if 'n0' in call]), 1)
        self.assertLess(len(calls), 8)


class SizesOfClustersTest(SizesTest):
    """Of graphs compiled in clusters."""

    must_compile = False

    def test_lazy_compilation_is_of_all_sizes(self):
        made = []

        class Recorded(kiln.Function):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                made.append(self)

        with unittest.mock.patch.object(sys.modules['kiln.jit'], 'Function', Recorded):
            chain, calls = self.traced(lambda x: numpy.tanh(x * x + x) * x - 1, lazy=True)
            for n in (3, 5, 6, 7):
                x = numpy.linspace(-1, 1, n, dtype=F32)
                numpy.testing.assert_allclose(chain(x), numpy.tanh(x * x + x) * x - 1, rtol=1e-5,
                                              atol=1e-6)
            _, function = made
            self.assertEqual((function.info.compiles, function.info.fallbacks), (1, 2))
            chain(numpy.ones(6, F32))
            self.assertEqual((function.info.compiles, function.info.fallbacks), (2, 2))
            self.assertEqual(len(calls), 2)
            background, calls = self.traced(lambda x: x * x + x, asynchronous_compilation=True)
            for n in (3, 5, 6):
                x = numpy.arange(n, dtype=F32)
                self.check(background(x), x * x + x)
            self.assertEqual(len(calls), 2)
        for option in ('lazy', 'asynchronous_compilation'):
            with self.assertRaisesRegex(ValueError, option + ' needs must_compile=False'):
                kiln.jit(lambda x: x, **{option: True})


if __name__ == '__main__':
    unittest.main()
