"""Values of graphs behave as NumPy's arrays do: operators, functions, methods, indices."""

import copy
import math
import operator
import pickle
import unittest

import numpy

import kiln


class ValuesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.context = kiln.Context(threads=1)

    @classmethod
    def tearDownClass(cls):
        cls.context.close()

    def run_graph(self, make, *arrays):
        """What a function of values makes of arrays: one array, or several."""
        graph = self.context.graph()
        made = make(*(graph.parameter(a.dtype, a.shape) for a in arrays))
        graph.set_results(*(made if isinstance(made, tuple) else (made,)))
        results = [numpy.array(r) for r in graph.compile()(*arrays)]
        return tuple(results) if isinstance(made, tuple) else results[0]

    def check(self, make, *arrays, rtol=0, like=None):
        """The same function of values and of arrays gives the same."""
        got = self.run_graph(make, *arrays)
        with numpy.errstate(all='ignore'):
            want = (like or make)(*arrays)
        for one, other in zip(got, want) if isinstance(got, tuple) else [(got, want)]:
            other = numpy.asarray(other)
            self.assertEqual(one.shape, other.shape)
            numpy.testing.assert_allclose(one, other, rtol=rtol)
            if one.dtype == other.dtype and other.dtype.kind == 'f' and rtol == 0:
                numpy.testing.assert_array_equal(numpy.signbit(one[one == 0]),
                                                 numpy.signbit(other[other == 0]))
        return got

    def test_operators_with_arrays_and_numbers(self):
        x = numpy.array([[1, -2, 3.5], [0, 5, -0.25]], numpy.float32)
        row = numpy.array([2, 0.5, -1], numpy.float32)
        column = numpy.array([[4], [-3]], numpy.float32)
        ops = (operator.add, operator.sub, operator.mul, operator.truediv, operator.mod,
               operator.floordiv, operator.lt, operator.le, operator.gt, operator.ge,
               operator.eq, operator.ne)
        for other in (row, column, 2, -1.5, numpy.float32(3), numpy.float64(0.5), True,
                      numpy.array(2, numpy.float32)):
            # NumPy 2 lets a scalar of 64 bits decide the type; in a graph a number never does.
            same = numpy.float32(other) if isinstance(other, numpy.float64) else other
            with self.subTest(other=repr(other)):
                # pylint: disable=cell-var-from-loop
                self.check(lambda a: tuple(f(a, other) for f in ops), x,
                           like=lambda a: tuple(f(a, same) for f in ops))
                self.check(lambda a: tuple(f(other, a) for f in ops), x,
                           like=lambda a: tuple(f(same, a) for f in ops))
        self.check(lambda a: a ** 2, x, rtol=1e-6)
        self.check(lambda a: 2 ** a, x, rtol=1e-6)
        self.check(lambda a, b: (a + b, b - a), x, column)
        self.check(lambda a: divmod(a, 2), x)
        self.check(lambda a: divmod(2, a), row)
        self.check(lambda a: (-a, +a, abs(a)), x)
        self.check(lambda a: (math.floor(a), math.ceil(a), round(a)), x,
                   like=lambda a: (numpy.floor(a), numpy.ceil(a), numpy.round(a)))

    def test_operators_of_integers(self):
        values = numpy.array([-128, -7, -3, -1, 0, 1, 2, 3, 7, 127], numpy.int8)
        a, b = (m.ravel().copy() for m in numpy.meshgrid(values, values))
        self.check(lambda a, b: (a // b, a % b, a + b, a * b, a & b, a | b, a ^ b, ~a), a, b)
        shifts = numpy.array([0, 1, 2, 7, 3, 1, 0, 5, 6, 4], numpy.int8)
        self.check(lambda a, b: (a << b, a >> b), values, shifts)
        unsigned = numpy.array([0, 1, 3, 200, 255], numpy.uint8)
        self.check(lambda a: (a >> 1, a << 1, a // 7, a % 7, 7 // a, 255 % a, a & 15, 3 | a),
                   unsigned)
        self.check(lambda a: (a ** 2, a + 3, 100 - a, a == 3, a != 3), unsigned,
                   like=lambda a: (a ** 2, a + numpy.uint8(3), numpy.uint8(100) - a, a == 3, a != 3))
        truths = numpy.array([True, False, True])
        self.check(lambda a: (a & True, a | False, a ^ True, ~a, a == True), truths)  # noqa
        large = numpy.array([2 ** 62, -1], numpy.int64)
        self.check(lambda a: (a - (2 ** 62 + 1), a ^ -2 ** 63), large)
        most = numpy.array([1, 2], numpy.uint64)
        self.check(lambda a: a ^ numpy.uint64(2 ** 64 - 1), most)

    def test_quotients_of_floats(self):
        special = [0.0, -0.0, 1, -1, 0.1, -0.1, 0.3, 3, -7.5, 1e-40, 1e30, -1e30, numpy.inf,
                   -numpy.inf, numpy.nan]
        for kind in (numpy.float32, numpy.float64, numpy.float16):
            with numpy.errstate(all='ignore'):
                values = numpy.array(special).astype(kind)
            a, b = (m.ravel().copy() for m in numpy.meshgrid(values, values))
            for op in (operator.floordiv, operator.mod):
                with self.subTest(kind=kind, op=op):
                    self.check(op, a, b)

    def test_numbers_that_a_type_lacks(self):
        graph = self.context.graph()
        ints, floats = graph.parameter('s8', [3]), graph.parameter('f32', [3])
        truths = graph.parameter('pred', [3])
        for error, wrong, word in (
                (TypeError, lambda: ints + 0.5, r"convert the value first.*astype\('f32'\)"),
                (TypeError, lambda: ints < 0.5, 'no number of s8'),
                (TypeError, lambda: floats * 1j, "astype\\('c64'\\)"),
                (TypeError, lambda: truths + 1, 'no number of pred'),
                (OverflowError, lambda: ints + 128, '128 is no number of s8'),
                (OverflowError, lambda: ints - -129, '-129'),
                (TypeError, lambda: ints / 2, 'use //'),
                (ValueError, lambda: ints ** -1, 'negative'),
                (TypeError, lambda: ints + floats, r's8\[3\] and f32\[3\].*astype'),
                (TypeError, lambda: floats + numpy.ones(3), r'f32\[3\] and f64\[3\]'),
                (TypeError, lambda: numpy.ones(3) + floats, 'convert one'),
                (ValueError, lambda: floats + graph.parameter('f32', [4]), 'do not go together'),
                (ValueError, lambda: floats + self.context.graph().parameter('f32', [3]),
                 'another graph'),
                (TypeError, lambda: floats + 'one', 'unsupported'),
                (TypeError, lambda: floats == [1, 2, 3], 'make it an array'),
                (TypeError, lambda: numpy.sqrt(ints), 'convert it to a float'),
                (TypeError, lambda: numpy.add.reduce(floats), 'no op'),
                (TypeError, lambda: numpy.heaviside(floats, 0.5), 'numpy.heaviside is no op'),
                (TypeError, lambda: numpy.add(floats, 1, where=False), 'no where'),
                (TypeError, lambda: numpy.asarray(floats), 'no elements'),
                (TypeError, lambda: numpy.where(floats > 0, 1, 2), 'no elements'),
                (TypeError, lambda: bool(floats > 0), 'graph.select'),
                (TypeError, lambda: 1 if floats == floats else 2, 'no elements'),
                (TypeError, lambda: float(floats), 'no elements'),
                (TypeError, lambda: floats in [ints], 'no elements|s8')):
            with self.assertRaisesRegex(error, word):
                wrong()
        array = numpy.zeros(3, numpy.float32)
        with self.assertRaisesRegex(TypeError, 'cannot be the result'):
            array += floats
        graph.check()  # none of this is a mistake of the graph
        self.assertFalse(floats == None)  # noqa: E711
        self.assertTrue(floats != None)  # noqa: E711

    def test_functions_of_numpy(self):
        x = numpy.array([0.5, -0.75, 0.25, 0.0, -0.0], numpy.float32)
        positive = numpy.array([0.5, 1.5, 3, 100], numpy.float32)
        names = ('negative', 'absolute', 'fabs', 'sign', 'exp', 'expm1', 'cbrt', 'sin', 'cos',
                 'tan', 'arcsin', 'arccos', 'arctan', 'sinh', 'cosh', 'tanh', 'arcsinh',
                 'arctanh', 'floor', 'ceil', 'rint', 'trunc', 'square', 'isfinite', 'isnan',
                 'isinf', 'positive', 'conjugate', 'logical_not')
        self.check(lambda a: tuple(getattr(numpy, name)(a) for name in names), x, rtol=1e-5)
        names = ('log', 'log1p', 'sqrt', 'reciprocal')
        self.check(lambda a: tuple(getattr(numpy, name)(a) for name in names), positive, rtol=1e-6)
        self.check(numpy.arccosh, positive[1:], rtol=1e-6)
        odd = numpy.array([numpy.inf, -numpy.inf, numpy.nan, 1], numpy.float32)
        self.check(lambda a: (numpy.isinf(a), numpy.isnan(a), numpy.isfinite(a)), odd)
        other = numpy.array([1, -1, 0.5, 2, -2], numpy.float32)
        names = ('add', 'subtract', 'multiply', 'divide', 'floor_divide', 'remainder', 'fmod',
                 'maximum', 'minimum', 'arctan2', 'equal', 'greater', 'logical_and',
                 'logical_or', 'logical_xor')
        self.check(lambda a, b: tuple(getattr(numpy, name)(a, b) for name in names), x, other,
                   rtol=1e-6)
        self.check(lambda a: tuple(getattr(numpy, name)(other, a) for name in names), x,
                   rtol=1e-6)
        self.check(numpy.floor, numpy.array([1, -2], numpy.int32))
        self.check(lambda a: numpy.clip(a, -0.5, 0.3), x, rtol=1e-6)

    def test_reductions(self):
        x = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4) - 7
        for axis in (None, 0, -1, (0, 2), (1,), ()):
            with self.subTest(axis=axis):
                self.check(lambda a: tuple(  # pylint: disable=cell-var-from-loop
                    getattr(a, name)(axis=axis, keepdims=keepdims) for keepdims in (False, True)
                    for name in ('sum', 'mean', 'max', 'min')), x, rtol=1e-6)
        self.check(lambda a: (numpy.sum(a, axis=1), numpy.mean(a), numpy.max(a, 0),
                              numpy.prod(a[0, 0])), x, rtol=1e-6)
        truths = numpy.array([[True, False], [True, True]])
        self.check(lambda a: (a.any(0), a.all(0), a.sum(), a.mean()), truths)
        small = numpy.array([100, 100, 100], numpy.int8)
        self.check(lambda a: a.sum(dtype='s32'), small, like=lambda a: a.sum(dtype='int32'))
        self.assertEqual(self.run_graph(lambda a: a.sum(), small).dtype, numpy.int8)
        self.assertEqual(self.run_graph(lambda a: a.mean(), small), 100)
        ones = numpy.ones(70000, numpy.float16)
        self.assertEqual(self.run_graph(lambda a: a.mean(), ones), 1)
        self.assertEqual(self.run_graph(lambda a: a[:4000].sum(), ones), 4000)
        graph = self.context.graph()
        with self.assertRaisesRegex(ValueError, 'no elements'):
            graph.parameter('f32', [0]).max()
        with self.assertRaisesRegex(IndexError, 'axis 1'):
            graph.parameter('f32', [3]).sum(1)
        with self.assertRaisesRegex(ValueError, 'twice'):
            graph.parameter('f32', [3]).sum((0, -1))

    def test_indices(self):
        x = numpy.arange(60, dtype=numpy.int32).reshape(3, 4, 5)
        keys = (0, -1, slice(1, 3), slice(None, None, -1), slice(3, 0, -2), slice(5, 9),
                (0, 1, 2), (slice(None), 1), (Ellipsis, 0), (0, Ellipsis, slice(1, None, 3)),
                None, (None, 0, None, slice(-2, None)), Ellipsis, (), numpy.int64(1),
                (slice(None), slice(None, None, -3), -2), (slice(2, 1), None))
        self.check(lambda a: tuple(a[key] for key in keys), x)
        self.check(lambda a: tuple(a), x)
        graph = self.context.graph()
        value = graph.parameter('s32', [3, 4])
        self.assertEqual(len(value), 3)
        for error, key in ((IndexError, 3), (IndexError, (0, 0, 0)), (IndexError, (Ellipsis,) * 2),
                           (TypeError, value), (TypeError, True), (TypeError, 1.0),
                           (TypeError, [0, 1])):
            with self.assertRaises(error):
                value[key]  # pylint: disable=pointless-statement
        with self.assertRaises(TypeError):
            len(value[0, 0])
        pair = graph.tuple([value, value[0]])
        first, second = pair
        self.assertEqual((len(pair), first.shape, second.shape), (2, (3, 4), (4,)))
        self.assertEqual(pair[-1].shape, (4,))
        with self.assertRaises(IndexError):
            pair[2]  # pylint: disable=pointless-statement
        graph.check()

    def test_shapes(self):
        x = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
        self.check(lambda a: (a.T, a.transpose(1, 0, 2), a.transpose((2, 0, -2)), a.reshape(6, 4),
                              a.reshape((4, -1)), a.ravel(), a.swapaxes(0, -1), a[None].squeeze(),
                              a[None].squeeze(0), numpy.transpose(a), numpy.reshape(a, (-1, 2)),
                              numpy.squeeze(a[:, :1], 1)), x)
        self.check(lambda a: a.mT, x, like=lambda a: a.swapaxes(-1, -2))
        self.check(lambda a: a[0, 0].broadcast_to((3, 4)), x,
                   like=lambda a: numpy.broadcast_to(a[0, 0], (3, 4)))
        self.check(lambda a: a.astype(kiln.DType('s32')), x)
        self.check(lambda a: a.astype(numpy.float64), x)
        self.check(lambda a: a > 3, x)
        z = numpy.array([1 + 2j, -3j], numpy.complex64)
        self.check(lambda a: (a.real, a.imag, a.conj(), a * 2j, abs(a)), z, rtol=1e-6)
        graph = self.context.graph()
        value = graph.parameter('bf16', [2, 3])
        self.assertEqual((value.shape, value.ndim, value.size), ((2, 3), 2, 6))
        self.assertEqual(value.shape, kiln.Shape('bf16', (2, 3), 12))
        self.assertNotEqual(value.shape, kiln.Shape('f16', (2, 3)))
        self.assertEqual(value.dtype, 'bfloat16')
        self.assertIs(value.astype('bf16'), value)
        for wrong in (lambda: value.reshape(4, -1), lambda: value.transpose(0),
                      lambda: value.squeeze(0), lambda: value.broadcast_to((3, 2))):
            with self.assertRaises(ValueError):
                wrong()

    def test_dtypes(self):
        f32 = kiln.DType('f32')
        for other in ('f32', 'float32', numpy.float32, numpy.dtype('f4'), kiln.DType('float32')):
            self.assertEqual(f32, other)
            self.assertIs(kiln.DType(other), f32)
        self.assertTrue(numpy.float32 == f32 and numpy.dtype('f4') == f32 and f32 != 'f64')
        self.assertEqual(numpy.zeros(2, f32).dtype, numpy.float32)
        self.assertEqual({f32: 1}['f32'], 1)
        self.assertEqual((str(f32), repr(f32), f32.kind, f32.itemsize),
                         ('f32', "kiln.DType('f32')", 'float', 4))
        self.assertEqual([kiln.DType(t) for t in (bool, int, float, complex, numpy.longlong)],
                         ['pred', 's64', 'f64', 'c128', 's64'])
        self.assertEqual(kiln.DType(numpy.dtype('u8')), 'u64')  # while 'u8' is HLO's, of 8 bits
        for wrong in ('f33', '>f4', numpy.dtype('>f4'), 'S3', object, None, 99):
            with self.assertRaises(ValueError):
                kiln.DType(wrong)
        self.assertIs(pickle.loads(pickle.dumps(f32)), f32)
        self.assertEqual(pickle.loads(pickle.dumps(kiln.Shape('f32', (2, 3)))).byte_size, 24)

    def test_matrix_products(self):
        random = numpy.random.default_rng(1)
        for left, right in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)),
                            ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)),
                            ((1, 2, 3), (5, 3, 4)), ((7, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4)),
                            ((5, 2, 3), (3,)), ((2, 0), (0, 3))):
            with self.subTest(left=left, right=right):
                a = random.integers(-4, 5, left).astype(numpy.float32)
                b = random.integers(-4, 5, right).astype(numpy.float32)
                self.check(operator.matmul, a, b)
                self.check(lambda a: a @ b, a)  # pylint: disable=cell-var-from-loop
                self.check(lambda b: a @ b, b)  # pylint: disable=cell-var-from-loop
                self.check(numpy.matmul, a, b)
        graph = self.context.graph()
        x = graph.parameter('f32', [2, 3])
        for error, other in ((TypeError, 2), (TypeError, numpy.float32(1)), (ValueError, x),
                             (TypeError, x[0, 0]), (TypeError, numpy.zeros((3, 2)))):
            with self.assertRaises(error):
                x @ other  # pylint: disable=pointless-statement
        graph.check()

    def test_symbols(self):
        graph = self.context.graph()
        n = graph.symbol('n')
        x = graph.parameter('f32', [n, 4])
        row = numpy.arange(4, dtype=numpy.float32)
        graph.set_results((x + row) * 2 - 1, x.mean(0), x[:, None], x.T, x / x.sum(0, keepdims=True))
        array = numpy.arange(1, 13, dtype=numpy.float32).reshape(3, 4)
        want = [(array + row) * 2 - 1, array.mean(0), array[:, None], array.T,
                array / array.sum(0, keepdims=True)]
        for result, other in zip(graph.compile(symbols={'n': 3})(array), want):
            numpy.testing.assert_allclose(numpy.asarray(result), other, rtol=1e-6)
        with self.assertRaisesRegex(IndexError, 'symbol'):
            x[::-1]  # pylint: disable=pointless-statement
        with self.assertRaises(TypeError):
            len(x)

    def test_identity(self):
        graph = self.context.graph()
        x, y = graph.parameter('f32'), graph.parameter('f32')
        self.assertIs(graph.parameters[0], x)
        self.assertEqual({x: 1, y: 2}[graph.parameters[1]], 2)
        graph.set_results(x + y)
        self.assertIs(graph.result, graph.result)

    def test_handles_cannot_be_pickled_or_copied(self):
        graph = self.context.graph()
        x = graph.parameter('f32', [2])
        graph.set_results(x + 1)
        executable = graph.compile()
        result, = executable(numpy.zeros(2, numpy.float32))
        for item in (self.context, graph, x, executable, result, result.device, result.event(),
                     kiln.Session(graph)):
            for copy_it in (pickle.dumps, copy.copy, copy.deepcopy):
                if item is result and copy_it is not pickle.dumps:
                    continue
                with self.assertRaisesRegex(TypeError, 'kiln.' + type(item).__name__ + ' cannot'):
                    copy_it(item)
        for copy_it in (copy.copy, copy.deepcopy):
            other = copy_it([result])[0] if copy_it is copy.deepcopy else copy_it(result)
            self.assertNotEqual(other.address, result.address)
            self.assertEqual(numpy.asarray(other).tolist(), [1, 1])
        with self.assertRaisesRegex(TypeError, 'numpy.asarray'):
            pickle.dumps(result)
        error = kiln.KilnError(kiln.Code.NOT_FOUND, 'gone')
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((again.code, again.message), (error.code, 'gone'))


if __name__ == '__main__':
    unittest.main()
