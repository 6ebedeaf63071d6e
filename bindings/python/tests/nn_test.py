"""The words of kiln.nn against NumPy's formulas in double precision."""

import itertools
import math
import unittest
import warnings

import numpy

import kiln
from kiln import nn

RNG = numpy.random.default_rng(7)
DEVICES = ('CPU:0', 'REFERENCE:0')


def normal(*dims, dtype=numpy.float32):
    return RNG.standard_normal(dims).astype(dtype)


def softmax(x, axis):
    e = numpy.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


class NnTest(unittest.TestCase):
    def setUp(self):
        self.context = kiln.Context()
        self.addCleanup(self.context.close)

    def run_words(self, words, *arrays, device=None, symbols=None, dims=None):
        """word(values...) of arrays as parameters, for each word."""
        graph = self.context.graph('words')
        sizes = {name: graph.symbol(name) for name in symbols or ()}
        values = [graph.parameter(a.dtype, [sizes.get(n, n) for n in shape], 'p{}'.format(i))
                  for i, (a, shape) in enumerate(
                      zip(arrays, dims or [a.shape for a in arrays]))]
        graph.set_results(*(word(*values) for word in words))
        on = self.context.device(device) if device else None
        return [numpy.asarray(result)
                for result in graph.compile(on, symbols=symbols)(*arrays)]

    def run_word(self, word, *arrays, **named):
        return self.run_words([word], *arrays, **named)[0]

    def check_all(self, pairs, *arrays, rtol=2e-6, atol=2e-6, **named):
        """Words and their references, which compute in double, on all devices."""
        wide = [a.astype(numpy.float64) if a.dtype.kind == 'f' else a for a in arrays]
        for device in DEVICES:
            results = self.run_words([word for word, _ in pairs], *arrays, device=device, **named)
            for result, (_, reference) in zip(results, pairs):
                with numpy.errstate(all='ignore'), warnings.catch_warnings():
                    warnings.simplefilter('ignore')
                    expected = reference(*wide)
                self.assertEqual(result.shape, numpy.shape(expected))
                numpy.testing.assert_allclose(result.astype(numpy.float64), expected, rtol, atol)
        return results[0]

    def check(self, word, reference, *arrays, **named):
        return self.check_all([(word, reference)], *arrays, **named)

    # --- Broadcasting

    def test_broadcasting(self):
        names = {'add': numpy.add, 'subtract': numpy.subtract, 'multiply': numpy.multiply,
                 'divide': numpy.divide, 'maximum': numpy.maximum, 'minimum': numpy.minimum,
                 'atan2': numpy.arctan2, 'remainder': numpy.fmod}
        shapes = [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((5,), (5,)),
                  ((0, 1), (3,)), ((1,), (0,))]
        for a, b in shapes:
            self.check_all([(getattr(nn, name), reference) for name, reference in names.items()],
                           normal(*a), normal(*b))
        x, y = RNG.integers(0, 9, (3, 1)), RNG.integers(0, 9, (4,))
        self.check_all([(getattr(nn, name), reference) for name, reference in (
            ('and_', numpy.bitwise_and), ('or_', numpy.bitwise_or), ('xor', numpy.bitwise_xor),
            ('shift_left', numpy.left_shift), ('shift_right_logical', numpy.right_shift),
            ('shift_right_arithmetic', numpy.right_shift), ('power', numpy.power))], x, y)
        self.check(lambda a, b: nn.compare(a, b, 'LT'), numpy.less, normal(3, 1), normal(1, 4))
        condition = normal(3, 1) > 0
        self.check(nn.where, numpy.where, condition, normal(4), normal(2, 1, 1))
        self.check(nn.clip, numpy.clip, normal(3, 4), -abs(normal(4)), abs(normal(3, 1)))
        self.check(lambda a, b: nn.clip(a, high=b), lambda a, b: numpy.clip(a, None, b),
                   normal(3, 4), normal(4))
        self.check(lambda a: nn.broadcast_to(a, (2, 3, 4)),
                   lambda a: numpy.broadcast_to(a, (2, 3, 4)), normal(3, 1))

    def test_broadcasting_of_symbols(self):
        self.check(nn.add, numpy.add, normal(3, 1, 4), normal(5, 1), symbols={'n': 3, 'm': 5},
                   dims=[('n', 1, 4), ('m', 1)])
        graph = self.context.graph('g')
        x, y = (graph.parameter('f32', [graph.symbol(s)], s) for s in 'nm')
        with self.assertRaisesRegex(kiln.KilnError, r"add: .*'n' f32\[n\].*'m' f32\[m\]"):
            nn.add(x, y)

    # --- Activations

    def test_softmax(self):
        for dims, axis in (((3, 5), -1), ((3, 5), 0), ((2, 3, 4), (0, -1)), ((4, 0), 0), ((7,), 0)):
            self.check_all([(lambda a, axis=axis: nn.softmax(a, axis),
                             lambda a, axis=axis: softmax(a, axis)),
                            (lambda a, axis=axis: nn.log_softmax(a, axis),
                             lambda a, axis=axis: numpy.log(softmax(a, axis)))], normal(*dims))
        large = numpy.array([[1000, 1001, -1000], [-3e38, 3e38, 0]], numpy.float32)
        self.check(nn.softmax, lambda a: softmax(a, -1), large)
        self.assertTrue(numpy.isfinite(self.run_word(nn.log_softmax, large[:1])).all())
        odd = numpy.array([[numpy.nan, 1], [numpy.inf, 1], [-numpy.inf, -numpy.inf],
                           [-numpy.inf, 1]], numpy.float32)
        self.check(nn.softmax, lambda a: softmax(a, -1), odd)
        self.check(nn.softmax, lambda a: softmax(a, -1), normal(3, 6), symbols={'n': 3, 'm': 6},
                   dims=[('n', 'm')])

    def test_rounded_once(self):
        x = normal(64, 50, dtype=numpy.float16)
        exact = softmax(x.astype(numpy.float64), -1)
        result = self.run_word(nn.softmax, x)
        self.assertEqual(result.dtype, numpy.float16)
        wrong = numpy.count_nonzero(result != exact.astype(numpy.float16))
        self.assertLess(wrong, x.size // 500)
        column = numpy.full((1, 4097), 1.0009765625, numpy.float16)
        self.assertEqual(self.run_word(lambda a: nn.mean(a, 1), column)[0], column[0, 0])

    def test_gelu_and_silu(self):
        x = numpy.concatenate([normal(1000) * 4, [0, -0.0, 40, -40, numpy.inf, numpy.nan]]).astype(
            numpy.float32)
        erfc = numpy.vectorize(math.erfc)
        self.check(lambda a: nn.gelu(a, False),
                   lambda a: a / 2 * erfc(-a / math.sqrt(2)), x[abs(x) < 9], rtol=1e-5, atol=0)
        self.check(lambda a: nn.gelu(a, False),
                   lambda a: a / 2 * erfc(-a / math.sqrt(2)), x)
        self.check(nn.gelu, lambda a: a / 2 * (
            1 + numpy.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3))), x)
        self.check(nn.silu, lambda a: a / (1 + numpy.exp(-a)), x)
        self.check(nn.silu, lambda a: a / (1 + numpy.exp(-a)), normal(9, dtype=numpy.float64),
                   rtol=1e-15, atol=1e-16)

    # --- Normalisations

    def test_norms(self):
        def layer(x, scale, offset, axis=-1):
            centred = x - x.mean(axis, keepdims=True)
            return centred / numpy.sqrt(x.var(axis, keepdims=True) + 1e-5) * scale + offset
        self.check(nn.layer_norm, layer, normal(3, 8), normal(8), normal(8), rtol=1e-5, atol=1e-5)
        self.check(lambda x: nn.layer_norm(x, axis=(1, 2)), lambda x: layer(x, 1, 0, (1, 2)),
                   normal(2, 3, 4) + 9, rtol=1e-5, atol=2e-5)
        self.check(nn.rms_norm, lambda x, scale: x / numpy.sqrt(
            (x * x).mean(-1, keepdims=True) + 1e-6) * scale, normal(3, 8), normal(8))
        self.check(nn.rms_norm, lambda x, scale: x / numpy.sqrt(
            (x * x).mean(-1, keepdims=True) + 1e-6) * scale, normal(3, 8), normal(8),
            symbols={'b': 3, 'n': 8}, dims=[('b', 'n'), ('n',)])
        half = self.run_word(nn.layer_norm, normal(3, 8, dtype=numpy.float16), normal(8), normal(8))
        self.assertEqual(half.dtype, numpy.float16)
        with self.assertRaisesRegex(kiln.KilnError, "layer_norm: scale is 'p1' f64"):
            self.run_word(lambda x, s: nn.layer_norm(x, s), normal(3, 8), normal(8, dtype='f8'))

    # --- Statistics

    def test_mean_and_variance(self):
        pairs = []
        for axis, keepdims in itertools.product((None, 0, -1, (0, 2)), (False, True)):
            pairs.append((lambda a, k=keepdims, axis=axis: nn.mean(a, axis, k),
                          lambda a, k=keepdims, axis=axis: a.mean(axis, keepdims=k)))
            pairs += [(lambda a, k=keepdims, axis=axis, d=ddof: nn.variance(a, axis, d, k),
                       lambda a, k=keepdims, axis=axis, d=ddof: a.var(axis, ddof=d, keepdims=k))
                      for ddof in (0, 1, 0.5, 99)]
        self.check_all(pairs, normal(2, 3, 4))
        integers = RNG.integers(-100, 100, (5, 6), numpy.int32)
        result = self.check(lambda a: nn.mean(a, 0), lambda a: a.mean(0), integers, rtol=1e-15)
        self.assertEqual(result.dtype, numpy.float64)
        self.check(lambda a: nn.variance(a, 0), lambda a: a.var(0), integers, rtol=1e-14)
        self.check(nn.mean, numpy.mean, integers > 0, rtol=1e-15)
        self.assertTrue(numpy.isnan(self.run_word(nn.mean, normal(0))))
        self.check(lambda a: nn.mean(a, 0), lambda a: a.mean(0), normal(3, 0))
        z = (normal(4, 5) + 1j * normal(4, 5)).astype(numpy.complex64)
        numpy.testing.assert_allclose(self.run_word(lambda a: nn.mean(a, 0), z), z.mean(0), 1e-5)
        variance = self.run_word(lambda a: nn.variance(a, 0), z)
        self.assertEqual(variance.dtype, numpy.float32)
        numpy.testing.assert_allclose(variance, z.var(0), 1e-5)
        for n in (1, 4):
            self.check(lambda a: nn.variance(a, (0, 1), 1), lambda a: a.var((0, 1), ddof=1),
                       normal(n, 3), symbols={'n': n}, dims=[('n', 3)])

    def test_positions(self):
        def check(x, **named):
            self.check_all([(lambda a, word=getattr(nn, name), axis=axis: word(a, axis),
                             lambda a, word=getattr(numpy, name), axis=axis: word(a, axis))
                            for name in ('argmax', 'argmin')
                            for axis in (None, *range(-x.ndim, x.ndim))], x, **named)
        check(normal(3, 4, 5))
        check(RNG.integers(0, 3, (4, 50)))  # ties
        check(RNG.integers(0, 3, (4, 50)).astype(numpy.uint8))
        check(normal(3, 40) > 0)
        odd = normal(6, 40)
        odd[0, 7], odd[0, 9], odd[1, :], odd[2, :] = numpy.nan, numpy.nan, numpy.inf, -numpy.inf
        odd[3, :], odd[4, 3], odd[5, 39] = numpy.nan, numpy.inf, numpy.nan
        check(odd)
        check(numpy.array([[0.0, -0.0], [-0.0, 0.0]], numpy.float32))
        check(odd.astype(numpy.float16))
        check(odd.astype(numpy.float64), symbols={'n': 6, 'm': 40}, dims=[('n', 'm')])
        several = self.run_word(lambda a: nn.argmax(a, (0, 2), True), x := normal(3, 4, 5))
        self.assertEqual(several.shape, (1, 4, 1))
        numpy.testing.assert_array_equal(
            several.ravel(), x.transpose(1, 0, 2).reshape(4, 15).argmax(1))
        small = self.run_word(lambda a: nn.argmax(a, 0, dtype='u8'), normal(200))
        self.assertEqual(small.dtype, numpy.uint8)
        for array, dtype, message in ((normal(3, 0), None, 'no element along dimensions 1'),
                                      (normal(3, 300), 'u8', 'u8 does not hold'),
                                      (normal(3, 3), 'f32', 'is no integer type')):
            with self.assertRaisesRegex(kiln.KilnError, 'argmax: .*' + message):
                self.run_word(lambda a, dtype=dtype: nn.argmax(a, 1, dtype=dtype), array)

    # --- Tables

    def test_take(self):
        x = normal(5, 3, 4)
        indices = numpy.array([[0, 4, -1], [-5, 2, 3]])
        for axis in (0, 1, -1):
            self.check_all([(lambda a, i, mode=mode: nn.take(a, i, axis, mode),
                             lambda a, i: a.take(i, axis)) for mode in ('fill', 'clip', 'wrap')],
                           x, indices % x.shape[axis])
        beyond = numpy.array([5, -6, 100, -1, 0])
        self.check(lambda a, i: nn.take(a, i, 0, 'clip'),
                   lambda a, i: a.take(i, 0, mode='clip'), x, beyond)
        self.check(lambda a, i: nn.take(a, i, 0, 'wrap'),
                   lambda a, i: a.take(i, 0, mode='wrap'), x, beyond)

        def filled(a, i):
            result = a.take(i, 0, mode='wrap')
            result[(i >= len(a)) | (i < -len(a))] = numpy.nan
            return result
        self.check(lambda a, i: nn.take(a, i, 0), filled, x, beyond)
        self.check(lambda a, i: nn.take(a, i, 0), filled, x, beyond, symbols={'n': 5, 'k': 5},
                   dims=[('n', 3, 4), ('k',)])
        for dtype, missing in ((numpy.int8, -128), (numpy.uint16, 65535), (numpy.bool_, True)):
            table = numpy.zeros(5, dtype)
            result = self.run_word(lambda a, i: nn.take(a, i, 0), table,
                                   numpy.array([7, 0], numpy.uint8))
            self.assertEqual(list(result), [missing, 0])
        huge = numpy.array([2 ** 64 - 1, 2 ** 63, 1], numpy.uint64)
        self.assertEqual(list(self.run_word(lambda a, i: nn.take(a, i, 0, 'clip'),
                                            numpy.arange(5), huge)), [4, 4, 1])
        self.assertTrue(numpy.isnan(self.run_word(lambda a, i: nn.take(a, i, 0), normal(0, 2),
                                                  beyond)).all())
        with self.assertRaisesRegex(kiln.KilnError, 'take: .*dimension 0 is empty'):
            self.run_word(lambda a, i: nn.take(a, i, 0, 'clip'), normal(0, 2), beyond)

    def test_one_hot(self):
        indices = numpy.array([[0, 2, 5], [-1, 3, 1]])
        rows = numpy.eye(4)
        expected = numpy.where((indices[..., None] >= 0) & (indices[..., None] < 4),
                               rows[indices % 4], 0)
        self.check_all([(lambda i, axis=axis: nn.one_hot(i, 4, axis=axis),
                         lambda i, axis=axis: numpy.moveaxis(expected, -1, axis))
                        for axis in (-1, 0, 1, 2, -3)], indices)
        graph = self.context.graph()
        i = graph.parameter('u8', [3], 'i')
        graph.set_results(nn.one_hot(i, graph.symbol('classes'), 'pred'))
        result, = graph.compile(symbols={'classes': 300})(numpy.array([0, 7, 255], numpy.uint8))
        self.assertEqual([tuple(p) for p in numpy.argwhere(numpy.asarray(result))],
                         [(0, 0), (1, 7), (2, 255)])

    # --- Attention

    @staticmethod
    def attention(q, k, v, bias=0.0, mask=True, scale=None, is_causal=False):
        group = q.shape[2] // k.shape[2]
        k, v = k.repeat(group, 2), v.repeat(group, 2)
        scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
        products = numpy.einsum('btnh,bsnh->bnts', q, k) * scale + bias
        if is_causal:
            mask = mask & numpy.tri(q.shape[1], k.shape[1], dtype=bool)
        products = numpy.where(mask, products, -1e30)
        return numpy.einsum('bnts,bsnh->btnh', softmax(products, -1), v)

    def test_attention(self):
        def arrays(b, t, s, n, k, h):
            return normal(b, t, n, h), normal(b, s, k, h), normal(b, s, k, h)
        check = self.check
        for sizes in ((2, 5, 7, 3, 3, 4), (2, 5, 7, 6, 2, 4), (1, 1, 9, 4, 1, 8), (2, 4, 4, 2, 2, 1)):
            q, k, v = arrays(*sizes)
            b, t, s, n = sizes[:4]
            check(nn.attention, self.attention, q, k, v, rtol=1e-5, atol=1e-5)
            check(lambda *a: nn.attention(*a, is_causal=True, scale=0.3),
                  lambda *a: self.attention(*a, is_causal=True, scale=0.3), q, k, v, rtol=1e-5,
                  atol=1e-5)
            mask, bias = normal(b, 1, t, s) > -0.5, normal(n, t, s)
            mask[0, 0, 0] = False  # sees nothing: the mean of all
            check(lambda q, k, v, m, b: nn.attention(q, k, v, b, m),
                  lambda q, k, v, m, b: self.attention(q, k, v, b, m), q, k, v, mask, bias,
                  rtol=1e-5, atol=1e-5)
        q, k, v = arrays(2, 5, 7, 4, 2, 4)
        check(lambda *a: nn.attention(*a, is_causal=True),
              lambda *a: self.attention(*a, is_causal=True), q, k, v, rtol=1e-5, atol=1e-5,
              symbols={'b': 2, 't': 5, 's': 7},
              dims=[('b', 't', 4, 4), ('b', 's', 2, 4), ('b', 's', 2, 4)])
        result = self.run_word(nn.attention, q[0], k[0], v[0])
        numpy.testing.assert_allclose(result, self.attention(q[:1], k[:1], v[:1])[0], 1e-5, 1e-5)
        half = [a.astype(numpy.float16) for a in (q, k, v)]
        result = self.run_word(nn.attention, *half)
        self.assertEqual(result.dtype, numpy.float16)
        numpy.testing.assert_allclose(result, self.attention(*(a.astype(float) for a in half)),
                                      2e-3, 2e-3)
        for (q, k, v), message in ((arrays(1, 2, 3, 3, 2, 4), '2 heads of keys do not divide 3'),
                                   ((q, k[:1], v[:1]), 'the numbers of batches are 2 and 1'),
                                   ((q, k[..., :2], v[..., :2]), 'the sizes of heads are 4 and 2'),
                                   ((q, k, v[:, :3]), 'key and value must be alike'),
                                   ((q[0], k, v), r'expected \[B,T,N,H\]')):
            with self.assertRaisesRegex(kiln.KilnError, 'attention: query is .*' + message):
                self.run_word(nn.attention, q, k, v)

    # --- What all have

    def test_kernels(self):
        """What the compiler makes of the words: one kernel each, and two of attention."""
        heads = (2, 64, 8, 64)
        for word, shapes, most in ((nn.softmax, [(64, 128)], 1), (nn.log_softmax, [(64, 128)], 1),
                                   (nn.layer_norm, [(64, 128), (128,), (128,)], 1),
                                   (nn.rms_norm, [(64, 128), (128,)], 1), (nn.gelu, [(64, 128)], 1),
                                   (lambda x: nn.argmax(x, -1), [(64, 128)], 1),
                                   (lambda x: nn.variance(x, -1), [(64, 128)], 1),
                                   (nn.attention, [heads] * 3, 2),
                                   (lambda *a: nn.attention(*a, is_causal=True), [heads] * 3, 2)):
            graph = self.context.graph('kernels')
            graph.set_results(word(*(graph.parameter('f32', dims) for dims in shapes)))
            self.assertEqual(graph.compile().info.kernels, most)

    def test_types(self):
        """Generated code and the evaluator agree, in the types that NumPy has not as well."""
        reals = (lambda a: nn.mean(a, -1), lambda a: nn.variance(a, 0, 1),
                 lambda a: nn.argmax(a, -1), lambda a: nn.argmin(a, 0),
                 lambda a: nn.take(a, a.graph.constant(numpy.array([0, 7, -2])), 1, 'clip'))
        floats = (nn.softmax, nn.log_softmax, nn.layer_norm, nn.rms_norm, nn.gelu, nn.silu,
                  lambda a: nn.gelu(a, False))
        for kind in ('bf16', 'f8e5m2', 'f8e4m3fn', 'f4e2m1fn', 'f64', 'pred', 's4', 'u8', 's64'):
            words = reals + floats if kind[:1] in 'bf' else reals
            array = normal(4, 9) if kind[:1] in 'bf' else RNG.integers(0, 2, (4, 9), numpy.int32)

            def plain(word):
                def run(a):
                    result = word(a.astype(kind))
                    kept = str(result.dtype) in ('s64', 'f64')
                    self.assertTrue(kept or result.dtype == kind)
                    return result if kept else result.astype('f32')
                return run
            compiled, exact = (self.run_words([plain(word) for word in words], array, device=device)
                               for device in DEVICES)
            for one, other in zip(compiled, exact):
                numpy.testing.assert_allclose(one, other, 1e-5, 1e-6)

    def test_methods_and_errors(self):
        graph = self.context.graph('net')
        x = graph.parameter('f32', [2, 3], 'x')
        self.assertEqual(graph.softmax(x, -1).shape, (2, 3))
        self.assertEqual(graph.mean(x, -1, keepdims=True).shape, (2, 1))
        for make, message in (
                (lambda x: nn.softmax(x, 2), r"softmax: operand is 'x' f32\[2,3\]: dimensions has 2"),
                (lambda x: nn.mean(x, (0, -2)), 'mean: .*dimensions has 0 twice'),
                (lambda x: nn.silu(x.graph.parameter('s32', [2], 'i')),
                 r"silu: operand is 'i' s32\[2\]; the element type must be a float")):
            graph = self.context.graph('net')
            with self.assertRaisesRegex(kiln.KilnError, message):
                make(graph.parameter('f32', [2, 3], 'x'))
        with self.assertRaises(ValueError):
            nn.take(x, x, 0, 'raise')


if __name__ == '__main__':
    unittest.main()
