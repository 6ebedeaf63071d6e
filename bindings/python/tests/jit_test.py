"""Functions of arrays, compiled when they are called."""

import collections
import enum
import gc
import os
import threading
import unittest
import weakref

import numpy

import kiln

Pair = collections.namedtuple('Pair', 'first second')
F32 = numpy.float32


class JitTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.context = kiln.Context(threads=2)

    @classmethod
    def tearDownClass(cls):
        cls.context.close()

    def jit(self, function=None, **options):
        return kiln.jit(function, context=self.context, **options) if function else (
            lambda f: self.jit(f, **options))

    def check(self, result, wanted):
        self.assertIsInstance(result, kiln.Buffer)
        numpy.testing.assert_array_equal(numpy.asarray(result), wanted)
        self.assertEqual(result.dtype, numpy.asarray(wanted).dtype)

    def test_each_signature_is_traced_once(self):
        traced = []

        @self.jit
        def double(x):
            """Twice."""
            traced.append(repr(x.shape))
            return x + x

        self.assertEqual((double.__name__, double.__doc__), ('double', 'Twice.'))
        x = numpy.arange(3, dtype=F32)
        for _ in range(3):
            self.check(double(x), x + x)
        self.check(double(double(x)), 4 * x)  # a buffer has the signature of its array
        self.check(double(x=x), x + x)
        self.check(double(numpy.ones((2, 2), F32)), numpy.full((2, 2), 2, F32))
        self.check(double(numpy.arange(3)), 2 * numpy.arange(3))
        self.check(double(numpy.ones((4, 6), F32)[::2, ::3]), numpy.full((2, 2), 2, F32))
        self.assertEqual(traced, ['f32[3]', 'f32[3]', 'f32[2,2]', 's64[3]'])
        self.assertEqual(double.cache_info(), kiln.CacheInfo(5, 4, 64, 4))
        double.cache_clear()
        self.assertEqual(double.cache_info(), kiln.CacheInfo(0, 0, 64, 0))
        self.check(double(x), x + x)
        self.assertEqual(len(traced), 5)

    def test_structures(self):
        @self.jit
        def swap(tree, *, scale):
            pair = tree['pair']
            self.assertIsInstance(pair, Pair)
            self.assertEqual(list(tree), ['pair', 'more'])
            self.assertIsNone(tree['more'][1])
            return Pair(pair.second * scale, (pair.first, None)), {'a': [], 'b': [tree['more'][0]]}

        a, b, c = (numpy.full(2, n, F32) for n in (1, 2, 3))
        pair, rest = swap({'pair': Pair(a, b), 'more': (c, None)}, scale=numpy.full(2, 10, F32))
        self.assertIsInstance(pair, Pair)
        self.check(pair.first, numpy.full(2, 20, F32))
        self.check(pair.second[0], a)
        self.assertIsNone(pair.second[1])
        self.assertEqual((list(rest), rest['a']), (['a', 'b'], []))
        self.check(rest['b'][0], c)
        swap({'pair': Pair(b, a), 'more': (c, None)}, scale=a)
        self.assertEqual(swap.cache_info().currsize, 1)
        # A list is no tuple: it may be told from one by the function.
        with self.assertRaises(AssertionError):
            swap({'pair': [a, b], 'more': (c, None)}, scale=a)
        self.assertEqual(swap.cache_info().currsize, 1)

    def test_results_of_other_kinds(self):
        x = numpy.ones(2, F32)
        same, twice, again, number, array, scalar = self.jit(
            lambda x: (x, x + x, x, 2.5, numpy.arange(3), F32(7)))(x)
        x[:] = 5  # results share no memory with arguments
        for result in (same, again):
            self.check(result, numpy.ones(2, F32))
        self.check(twice, 2 * numpy.ones(2, F32))
        self.check(number, 2.5)
        self.check(array, numpy.arange(3))
        self.check(scalar, F32(7))
        self.assertIsNone(self.jit(lambda x: None)(x))
        self.assertEqual(self.jit(lambda x: ((), {}))(x), ((), {}))
        self.check(self.jit(lambda: 3)(), 3)

    def test_results_that_are_tuples_of_the_graph(self):
        x = numpy.array([3, 1, 3, 2], F32)

        def largest_with_places(x):
            top = x.graph.topk(x, 2, largest=True)
            return {'top': top, 'all': x.graph.tuple([x.graph.tuple([x]), top[1]])}

        results = self.jit(largest_with_places)(x)
        self.check(results['top'][0], numpy.array([3, 3], F32))
        (same,), again = results['all']
        self.check(same, x)
        for places in (results['top'][1], again):
            self.check(places, numpy.array([0, 2], numpy.int32))

    def test_sizes_known_during_a_run(self):
        distinct = self.jit(lambda x: x.graph.unique(x), must_compile=False)
        for x in ([3, 1, 3, 2], [5, 5, 5, 5]):
            values, numbers, counts = distinct(numpy.array(x, F32))
            wanted = list(dict.fromkeys(x))
            self.check(values, numpy.array(wanted, F32))
            self.check(numbers, numpy.array([wanted.index(n) for n in x], numpy.int32))
            self.check(counts, numpy.array([x.count(n) for n in wanted], numpy.int32))
        self.assertEqual(distinct.cache_info().misses, 1)
        with self.assertRaisesRegex(kiln.KilnError, 'kiln.unique'):
            self.jit(lambda x: x.graph.unique(x)[0])(numpy.ones(3, F32))

    def test_numbers_take_the_type_of_arrays(self):
        traced = []

        @self.jit
        def step(x, rate, power):
            traced.append(x.shape)
            scale = -(2 * rate) / 4 + numpy.sqrt(power) + 0 * abs(power)
            return x * scale, x - rate, x ** power, scale

        x = numpy.array([1, 2, 3], F32)
        for rate, power in ((0.5, 4), (0.25, 9), (1e-3, 1)):
            scaled, minus, raised, scale = step(x, rate, power)
            wanted = -(2 * rate) / 4 + numpy.sqrt(power)
            self.check(scaled, x * F32(wanted))
            self.check(minus, x - F32(rate))
            numpy.testing.assert_allclose(raised, x ** F32(power), rtol=1e-6)
            self.assertEqual(raised.dtype, 'f32')
            self.check(scale, numpy.float64(wanted))
        self.assertEqual(len(traced), 1)
        for kind in (numpy.float16, numpy.float64):  # each type of the array is a signature
            scaled, minus, _, _ = step(x.astype(kind), 0.5, 4)
            self.check(minus, x.astype(kind) - kind(0.5))
        self.assertEqual(len(traced), 3)
        # NumPy's scalars are numbers, too, of their own type where they are alone.
        _, minus, _, scale = step(x, numpy.float64(0.1), numpy.float64(4))
        self.check(minus, x - F32(0.1))
        add = self.jit(lambda a, b: a + b)
        self.check(add(F32(1), F32(2)), F32(3))
        self.check(add(F32(1), numpy.float64(2)), numpy.float64(3))
        self.check(add(x, numpy.int32(2)), x + 2)

    def test_numbers_among_themselves(self):
        compute = self.jit(lambda n, x, b: {
            'half': n / 2, 'third': 1 / n, 'sum': n + x, 'float': n + 0.5, 'floor': n // 2,
            'exp': numpy.exp(n), 'minus': -n, 'array': n * numpy.arange(3, dtype=F32),
            'larger': n > x, 'not': ~b & (x > 0), 'complex': x * 1j, 'integer': n.astype('s32')})
        results = compute(7, 0.25, False)
        wanted = {'half': 3.5, 'third': 1 / 7, 'sum': 7.25, 'float': 7.5, 'floor': 3, 'minus': -7,
                  'array': 7 * numpy.arange(3, dtype=F32), 'larger': True, 'not': True,
                  'complex': 0.25j, 'integer': numpy.int32(7)}
        numpy.testing.assert_allclose(results.pop('exp'), numpy.exp(7), rtol=1e-14)
        self.assertEqual(results.keys(), wanted.keys())
        for key, value in wanted.items():
            with self.subTest(key=key):
                self.check(results[key], value)

    def test_numbers_of_a_kind_that_does_not_fit(self):
        integers, preds = numpy.arange(3), numpy.array([True, False])
        add = self.jit(lambda a, b: a + b)
        self.check(add(integers, True), integers + 1)
        with self.assertRaisesRegex(TypeError, 'a number of f64 is no number of s64'):
            add(integers, 0.5)
        with self.assertRaisesRegex(TypeError, 'a number of s64 is no number of pred'):
            add(preds, 1)
        with self.assertRaises(OverflowError):
            add(integers, 2 ** 70)
        self.check(add(integers, 3), integers + 3)

        class Level(enum.IntEnum):
            HIGH = 2
        self.check(add(integers, Level.HIGH), integers + 2)
        # A value that is converted is a number no more.
        with self.assertRaisesRegex(TypeError, 'element types are not converted unasked'):
            self.jit(lambda a, b: a + b.astype('f64'))(numpy.ones(2, F32), 0.5)

    def test_static_arguments(self):
        traced = []

        @self.jit(static_argnums=(1, -1))
        def power(x, n, unused=None, negate=False):
            traced.append((n, negate))
            for _ in range(n - 1):
                x = x * x
            return -x if negate else x

        x = numpy.array([2, 3], F32)
        self.check(power(x, 1), x)
        self.check(power(x, 2), x ** 2)
        self.check(power(x, n=2), x ** 2)
        self.check(power(x, 2, None, True), -x ** 2)
        self.check(power(x, 2, negate=True), -x ** 2)
        self.check(power(x * 2, 2), 4 * x ** 2)
        self.check(power(x, 1.0 == 1), x)  # True is another value than 1
        self.assertEqual(traced, [(1, False), (2, False), (2, False), (2, True), (2, True),
                                  (True, False)])
        with self.assertRaisesRegex(TypeError, 'power: the static argument 1 is a list, which has '
                                    'no hash'):
            power(x, [2])
        with self.assertRaisesRegex(ValueError, 'static_argnums has -2; the function has 1'):
            self.jit(lambda x: x, static_argnums=-2)
        last = self.jit(lambda *args: args[0] * args[1], static_argnums=1)
        self.check(last(x, 3), 3 * x)

    def test_methods(self):
        class Layer:
            def __init__(self, factor):
                self.factor = factor

            @kiln.jit(context=self.context, static_argnums=0)
            def apply(self, x):
                return x * self.factor

        x = numpy.ones(2, F32)
        two, three = Layer(2), Layer(3)
        self.check(two.apply(x), 2 * x)
        self.check(three.apply(x), 3 * x)
        self.check(Layer.apply(two, x), 2 * x)
        self.assertEqual(Layer.apply.cache_info().currsize, 2)

    def test_one_function_in_another(self):
        square = self.jit(lambda x: x * x)
        both = self.jit(lambda x, y: square(x) + square(y)[0])
        x = numpy.arange(3, dtype=F32)
        self.check(both(x, x + 1), x * x + 1)
        self.assertEqual(square.cache_info().misses, 0)  # it is a part of the other
        # Called with an array it is a constant.
        self.check(self.jit(lambda y: square(x) + y)(x), x * x + x)
        self.assertEqual(square.cache_info().misses, 1)

    def test_errors_leave_nothing(self):
        x = numpy.ones(2, F32)
        fail = [ValueError('mine')]

        @self.jit
        def sometimes(x, y):
            if fail:
                raise fail.pop()
            return x + y

        with self.assertRaisesRegex(ValueError, 'mine'):
            sometimes(x, x)
        self.assertEqual(sometimes.cache_info().currsize, 0)
        self.check(sometimes(x, x), x + x)
        with self.assertRaisesRegex(ValueError, 'the dimensions do not go together'):
            sometimes(x, numpy.ones(3, F32))
        with self.assertRaisesRegex(TypeError, 'element types are not converted'):
            sometimes(x, numpy.ones(2))
        self.assertEqual(sometimes.cache_info().currsize, 1)
        with self.assertRaisesRegex(kiln.KilnError, 'operands have shapes'):
            self.jit(lambda x: x.graph.add(x, x[:1]))(x)
        with self.assertRaises(TypeError):
            sometimes(x)
        with self.assertRaises(TypeError):
            sometimes(x, z=x)

    def test_mistakes_are_told(self):
        x = numpy.ones(2, F32)
        with self.assertRaisesRegex(TypeError, r'take: .* tree\.word\.1 is neither .* str'):
            @self.jit
            def take(x, tree):
                return x
            take(x, {'word': (x, 'text')})
        with self.assertRaisesRegex(TypeError, 'argument x is neither an array'):
            self.jit(lambda x: x)(numpy.array([None]))
        with self.assertRaisesRegex(TypeError, '<lambda> returns a str, which is neither'):
            self.jit(lambda x: 'text')(x)
        with self.assertRaisesRegex(TypeError, 'has no elements before'):
            self.jit(lambda x: x if x.sum() > 0 else -x)(x)
        kept = []
        self.jit(lambda x: kept.append(x) or x)(x)
        with self.assertRaisesRegex(ValueError, 'of another graph, kept from another call'):
            self.jit(lambda x: kept[0])(x)
        with self.assertRaisesRegex(ValueError, 'is of another graph'):
            self.jit(lambda x: x + kept[0])(x)
        with self.assertRaisesRegex(TypeError, 'cannot be called'):
            self.jit(3)
        with self.assertRaisesRegex(ValueError, 'needs its context'):
            kiln.jit(lambda x: x, device=self.context.device())
        with self.assertRaisesRegex(ValueError, 'max_programs is 0'):
            self.jit(lambda x: x, max_programs=0)
        with self.assertRaisesRegex(kiln.KilnError, "there is no device 'XLA_CPU:9'"):
            self.jit(lambda x: x, device='XLA_CPU:9')(x)

    def test_the_cache_is_bounded(self):
        traced = []
        count = self.jit(lambda x: traced.append(len(x)) or x + 1, max_programs=2)
        for n in (1, 2, 1, 3, 1, 2):  # 2 goes for 3, and 3 for 2
            self.check(count(numpy.zeros(n, F32)), numpy.ones(n, F32))
        self.assertEqual(traced, [1, 2, 3, 2])
        self.assertEqual(count.cache_info(), kiln.CacheInfo(2, 4, 2, 2))

    def test_calls_of_one_kind_after_another(self):
        @self.jit
        def scaled(x, by):
            return x * by

        x, longer = numpy.arange(3, dtype=F32), numpy.arange(4, dtype=F32)
        for argument in x, scaled(x, 1.0), scaled(x, 1.0), longer, x.astype('f8'), x:
            for by in 2.0, 3.0, 2, numpy.float64(2):
                number = float(by) if isinstance(by, numpy.float64) else by
                wanted = numpy.asarray(argument) * number
                for _ in range(2):
                    self.check(scaled(argument, by), wanted)
        x[:] = 7  # in the same memory
        self.check(scaled(x, 2.0), [F32(14)] * 3)
        self.check(scaled(x[::-1], 2.0), [F32(14)] * 3)
        self.assertRaises(TypeError, scaled, x)
        # f32[3], f32[4] and f64[3] by an f64 and by an s64, and the call that fails.
        self.assertEqual(scaled.cache_info()[:2], (6 * 4 * 2 + 2 + 2 - 6, 7))
        scaled.cache_clear()
        self.check(scaled(x, 2.0), [F32(14)] * 3)
        self.assertEqual(scaled.cache_info()[:2], (0, 1))

    def test_buffers_of_freed_arrays_are_not_taken_for_others(self):
        @self.jit
        def double(x):
            return x + x

        for i in range(100):
            x = numpy.full(1000, i, F32)  # mostly where the one before was
            self.check(double(x), 2 * x)
            del x

    def test_threads_share_one_compilation(self):
        traced, errors, sums = [], [], []
        entered = threading.Event()

        @self.jit
        def slow(x):
            traced.append(threading.get_ident())
            entered.wait(0.2)
            if len(traced) == 1:
                raise ValueError('the first fails')
            return x + 1

        start = threading.Barrier(6)

        def work():
            start.wait()
            try:
                sums.append(numpy.asarray(slow(numpy.ones(4, F32))).sum())
            except ValueError as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # One thread has the error of its own call; another one traces again, for all the others.
        self.assertEqual((len(traced), len(errors), sums), (2, 1, [8] * 5))
        self.assertEqual(slow.cache_info().currsize, 1)

    def test_threads_with_many_signatures(self):
        add = self.jit(lambda x, y: x + y, max_programs=3)
        wrong = []

        def work(seed):
            for i in range(40):
                n = 1 + (i * seed) % 7
                if not (numpy.asarray(add(numpy.full(n, i, F32), seed)) == i + seed).all():
                    wrong.append((seed, i))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(add.cache_info().currsize, 3)

    def test_devices(self):
        with kiln.Context(threads=1, gpu='EMULATED') as context:
            x = numpy.arange(4, dtype=F32)
            for device in ('XLA_CPU:0', 'GPU:0', context.device('GPU')):
                add = kiln.jit(lambda a, b: (a + b, b), context=context, device=device)
                result, same = add(x, 2.5)
                self.check(result, x + F32(2.5))
                name = device if isinstance(device, str) else device.name
                self.assertEqual((result.device.name, same.device.name), (name, name))
                # Buffers of other devices are copied.
                elsewhere = context.device().copy(x)
                self.check(add(elsewhere, result)[0], 2 * x + F32(2.5))
                self.assertEqual(elsewhere.device.name, 'CPU:0')
            # And those of another context.
            elsewhere = self.context.device().copy(x)
            for must_compile in (True, False):
                add = kiln.jit(lambda a, b: a + b, context=context, must_compile=must_compile)
                self.check(add(elsewhere, x), x + x)

    def test_clusters_and_whole_graphs(self):
        def placed(x):
            with x.graph.device('XLA_CPU:0'):
                y = numpy.tanh(x)
            return y, y + x

        x = numpy.linspace(-1, 1, 5, dtype=F32)
        for must_compile, device in ((True, 'CPU:0'), (False, 'XLA_CPU:0')):
            y, total = self.jit(placed, must_compile=must_compile)(x)
            numpy.testing.assert_allclose(y, numpy.tanh(x), rtol=1e-6)
            numpy.testing.assert_allclose(total, numpy.tanh(x) + x, rtol=1e-6)
            self.assertEqual((y.device.name, total.device.name), (device, 'CPU:0'))
        clusters = self.jit(lambda x, n: (x, x, x * n, n), must_compile=False)
        one, other, product, number = clusters(x, 2)
        kept = x.copy()
        x[:] = 0
        for result, wanted in ((one, kept), (other, kept), (product, 2 * kept), (number, 2)):
            self.check(result, wanted)

    def test_arguments_of_other_kinds(self):
        import array
        double = self.jit(lambda x: x + x)
        self.check(double(array.array('f', [1, 2])), numpy.array([2, 4], F32))
        self.check(double(memoryview(numpy.arange(3))), 2 * numpy.arange(3))
        self.check(double(F32(2)), F32(4))
        self.check(double(numpy.array(2, F32)), F32(4))

        class Exporter:
            def __init__(self, source):
                self.__dlpack__ = source.__dlpack__
                self.__dlpack_device__ = source.__dlpack_device__
        self.check(double(Exporter(numpy.arange(3, dtype=F32))), 2 * numpy.arange(3, dtype=F32))
        self.check(self.jit(lambda pair: pair[0] + pair[1])([1, 2]), 3)  # a list is a structure

    def test_what_is_dropped_is_released(self):
        class Holder:
            pass

        holder = Holder()
        function = self.jit(lambda x, h: x + 1, static_argnums=1)
        function(numpy.ones(2, F32), holder)
        there = weakref.ref(holder)
        del holder
        gc.collect()
        self.assertIsNotNone(there())
        function.cache_clear()
        gc.collect()
        self.assertIsNone(there())
        live = self.context.memory.live_bytes
        big = self.jit(lambda x: x + numpy.ones(1 << 20, F32))
        big(numpy.ones(1 << 20, F32))
        del big
        gc.collect()
        self.assertLess(self.context.memory.live_bytes - live, 1 << 20)

    def test_the_default_context(self):
        add = kiln.jit(lambda x, y: x + y)
        x = numpy.ones(2, F32)
        self.check(add(x, 1), x + 1)
        context = kiln.default_context()
        self.assertIs(kiln.default_context(), context)
        self.check(add(context.device().copy(x), x), x + 1)
        with kiln.default_context():
            pass
        self.assertIsNot(kiln.default_context(), context)  # it was closed
        self.check(add(x, 2), x + 2)
        child = os.fork()
        if child == 0:
            os._exit(0 if numpy.asarray(add(x, 3)).tolist() == [4, 4] else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.check(add(x, 3), x + 3)


if __name__ == '__main__':
    unittest.main()
