"""Sizes of symbols: their arithmetic, what inference makes of them, and the numbers put in."""

import copy
import unittest

import numpy

import kiln


class SymbolTest(unittest.TestCase):
    def setUp(self):
        self.context = kiln.Context()
        self.addCleanup(self.context.close)
        self.graph = self.context.graph('sizes')
        self.n, self.m = self.graph.symbol('n'), self.graph.symbol('m')

    def test_arithmetic(self):
        n, m = self.n, self.m
        for size, text in ((2 * n + 1, '2*n+1'), (n * 3 - 1, '3*n-1'), (8 - n, '-n+8'),
                           (n + m, 'm+n'), (n * m - n, 'm*n-n'), (-n + 9, '-n+9')):
            self.assertIsInstance(size, kiln.Symbol)
            self.assertEqual(str(size), text)
        self.assertEqual(n + n, 2 * n)
        self.assertEqual(n - n, 0)
        self.assertEqual(n + 4 - n, 4)
        self.assertNotEqual(n, m)
        for refused in (lambda: n / 2, lambda: n // 2, lambda: 7 % n, lambda: n ** 2):
            with self.assertRaisesRegex(TypeError, 'n has no number'):
                refused()
        with self.assertRaises(TypeError):
            n + 1.5
        other = self.context.graph().symbol('n')
        with self.assertRaisesRegex(ValueError, 'two graphs'):
            n + other

    def test_it_is_no_number(self):
        n = self.n
        x = self.graph.parameter('f32', [n, 4, self.m], 'x')
        for refused in (lambda: int(n), lambda: float(n), lambda: range(n), lambda: n < 3,
                        lambda: max(n, 3), lambda: [0] * n, lambda: numpy.zeros(n),
                        lambda: numpy.arange(n), lambda: numpy.sqrt(n), lambda: x / n,
                        lambda: x.shape.byte_size, lambda: len(x), lambda: list(x),
                        lambda: [1, 2, 3][:n], lambda: copy.copy(n)):
            with self.assertRaises(TypeError):
                refused()
        self.assertTrue(n)
        self.assertEqual((n == 3, n != 3, n == n + 0, n == None), (False, True, True, False))
        self.assertEqual({n: 1}[n + 1 - 1], 1)
        self.assertEqual((x.size, sum([n, 1, n])), (4 * n * self.m, 2 * n + 1))

    def test_a_size_that_follows_from_the_others(self):
        n, m = self.n, self.m
        x = self.graph.parameter('f32', [n, 4, m], 'x')
        for dims, wanted in (((-1,), (4 * n * m,)), ((n, -1), (n, 4 * m)), ((m, n, -1), (m, n, 4)),
                             ((-1, 2), (2 * n * m, 2)), ((n, m, 2, 2, -1), (n, m, 2, 2, 1))):
            self.assertEqual(x.reshape(*dims).shape.dims, wanted)
        self.assertEqual(x.ravel().shape.dims, (4 * n * m,))
        for dims in ((3, -1), (n, n, -1), (n + 1, -1), (0, -1)):
            with self.assertRaisesRegex(ValueError, 'cannot reshape'):
                x.reshape(*dims)

    def test_shapes(self):
        graph, n = self.graph, self.n
        x = graph.parameter('f32', [2 * n + 1], 'x')
        self.assertEqual(x.shape.dims, (2 * n + 1,))
        self.assertIn('f32[2*n+1]', repr(x))
        tail = graph.slice(x, [n], [2 * n + 1], [1])
        self.assertEqual(tail.shape.dims, (n + 1,))
        both = graph.concatenate([x, tail], [0])
        self.assertEqual(both.shape.dims, (3 * n + 2,))
        graph.set_results(both)
        values = numpy.arange(7, dtype=numpy.float32)
        result, = graph.compile(symbols={'n': 3})(values)
        numpy.testing.assert_array_equal(result, numpy.concatenate([values, values[3:]]))

    def test_indices(self):
        graph, n, m = self.graph, self.n, self.m
        x = graph.parameter('f32', [2 * n + 1, m], 'x')
        taken = [x[1:], x[:-1, None], x[n:, -1], x[1:2 * n + 1:2], x[0], x[..., 1:3], x[-2:, :m - 1]]
        self.assertEqual([v.shape.dims for v in taken],
                         [(2 * n, m), (2 * n, 1, m), (n + 1,), (n, m), (m,), (2 * n + 1, 2),
                          (2, m - 1)])
        graph.set_results(*taken)
        array = numpy.arange(28, dtype=numpy.float32).reshape(7, 4)
        results = graph.compile(symbols={'n': 3, 'm': 4})(array)
        want = [array[1:], array[:-1, None], array[3:, -1], array[1:7:2], array[0], array[..., 1:3],
                array[-2:, :3]]
        for result, other in zip(results, want):
            numpy.testing.assert_array_equal(result, other)
        with self.assertRaisesRegex(kiln.KilnError, 'expected 0 <= start <= limit <= 2'):
            graph.compile(symbols={'n': 3, 'm': 2})(array)
        with self.assertRaisesRegex(IndexError, 'graph.reverse'):
            x[::-1]  # pylint: disable=pointless-statement

    def test_raw_integers(self):
        with self.assertRaisesRegex(kiln.KilnError, 'parameter.*kiln_graph_symbol_affine'):
            self.graph.parameter('f32', [2 * self.n.number])

    def test_bounds(self):
        graph = self.graph
        some = graph.bounded_size(6)
        self.assertEqual(str(some), '<=6')
        self.assertEqual(some, graph.bounded_size(6))
        x = graph.parameter('f32', [6], 'x')
        rows = graph.nonzero(x)
        self.assertEqual(rows.shape.dims, (some, 1))
        doubled = graph.boolean_mask(x, x > 0) * 2
        self.assertEqual(doubled.shape.dims, (some,))
        looked = graph.host_callback('look', [doubled], [('s32', [some, 2]), ('f32', [])])
        self.assertEqual(graph.get_tuple_element(looked, 0).shape.dims, (some, 2))
        kept = graph.assert_(graph.parameter('pred', [], 'p'), doubled, [x], 'not good')
        graph.set_results(graph.print(kept, [], 'kept '))
        with self.assertRaisesRegex(kiln.KilnError, 'kiln.nonzero.*run it in a session'):
            graph.compile()
        with self.assertRaisesRegex(kiln.KilnError, '<=6 is a bound'):
            some + 1

    def test_unknown_symbol(self):
        x = self.graph.parameter('f32', [self.n], 'x')
        self.graph.set_results(x)
        with self.assertRaisesRegex(kiln.KilnError, "no symbol 'k'; there are m, n"):
            self.graph.compile(symbols={'n': 1, 'k': 2})


if __name__ == '__main__':
    unittest.main()
