"""Callbacks of JAX's programs on Kiln into Python. The environment is that of plugin_test.py."""

import concurrent.futures
import contextlib
import gc
import inspect
import io
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.numpy as jnp
import numpy as np
from jax.experimental import buffer_callback, checkify, io_callback

KILN, CPU = jax.devices('kiln')[0], jax.devices('cpu')[0]


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def pure(function, x, **options):
    return jax.pure_callback(function, like(x), x, **options)


def run(function, *args):
    """The results as NumPy's arrays, when all effects are over."""
    results = jax.tree.map(np.asarray, jax.jit(function)(*args))
    jax.effects_barrier()
    return results


class ValueTest(unittest.TestCase):
    def test_results_reach_the_program(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(run(lambda a: pure(lambda v: np.asarray(v) * 2, a + 1) - 1, x),
                                      (x + 1) * 2 - 1)
        a, b = run(lambda v: jax.pure_callback(
            lambda u, w: (u[0], np.float32(u.sum() + w)),
            (jax.ShapeDtypeStruct((3,), np.float32), jax.ShapeDtypeStruct((), np.float32)), v, v[0, 1]),
            x)
        np.testing.assert_array_equal(a, x[0])
        self.assertEqual(b, x.sum() + 1)

    def test_element_types(self):
        kinds = [jnp.bool_, jnp.int4, jnp.uint4, jnp.int8, jnp.uint16, jnp.int32, jnp.float16,
                 jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3b11fnuz,
                 jnp.float4_e2m1fn, jnp.complex64, jnp.int2, jnp.uint2]
        for kind in kinds:
            x, seen = np.array([0, 1, 1, 0, 1]).astype(kind), []

            def reverse(v, seen=seen):
                seen.append((v.dtype, np.asarray(v)))
                return np.asarray(v)[::-1]

            with self.subTest(kind=kind.__name__):
                y = run(lambda a, reverse=reverse: pure(reverse, a), x)
                self.assertEqual((y.dtype, seen[0][0]), (x.dtype, x.dtype))
                np.testing.assert_array_equal(y, x[::-1])
                np.testing.assert_array_equal(seen[0][1], x)
        with jax.enable_x64(True):
            for kind in (np.float64, np.complex128, np.int64, np.uint64):
                x = np.array([1, 2, 3]).astype(kind)
                np.testing.assert_array_equal(run(lambda a: pure(lambda v: np.asarray(v) * 3, a), x),
                                              x * 3)

    def test_sizes(self):
        for shape in ((), (0,), (3, 0, 2), (1, 1), (1000, 70)):
            x = np.ones(shape, np.float32)
            y = run(lambda a: pure(lambda v: np.asarray(v) + 1, a), x)
            self.assertEqual(y.shape, shape)
            np.testing.assert_array_equal(y, x + 1)

    def test_without_arguments_and_results(self):
        calls = []
        self.assertEqual(run(lambda: jax.pure_callback(lambda: np.int32(7),
                                                       jax.ShapeDtypeStruct((), np.int32))), 7)
        run(lambda: io_callback(lambda: calls.append(1), None))
        self.assertEqual(calls, [1])

    def test_arguments_stay_when_the_call_is_over(self):
        kept = []
        f = jax.jit(lambda a: jax.debug.callback(kept.append, a * 2))
        for i in range(20):
            f(np.full(5000, i, np.float32))
        jax.effects_barrier()
        self.assertEqual([float(np.asarray(k)[17]) for k in kept], [2.0 * i for i in range(20)])

    def test_keys_and_trees(self):
        key = jax.random.key(3)
        seen = run(lambda k: jax.pure_callback(
            lambda d: {'a': np.asarray(d['k']) + np.uint32(1)},
            {'a': jax.ShapeDtypeStruct((2,), np.uint32)}, {'k': jax.random.key_data(k)}), key)
        np.testing.assert_array_equal(seen['a'], np.asarray(jax.random.key_data(key)) + 1)


class TransformationTest(unittest.TestCase):
    def test_vmap(self):
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        shapes = {'sequential': [(3,)] * 4, 'sequential_unrolled': [(3,)] * 4,
                  'expand_dims': [(4, 3)], 'broadcast_all': [(4, 3)]}
        for method, expected in shapes.items():
            seen = []

            def double(v, w, seen=seen):
                seen.append(v.shape)
                return np.asarray(v) * np.asarray(w)

            def call(v, double=double, method=method):
                return jax.pure_callback(double, like(v), v, jnp.ones(3) * 2, vmap_method=method)

            with self.subTest(method=method):
                np.testing.assert_array_equal(run(jax.vmap(call), x), x * 2)
                self.assertEqual(seen, expected)

    def test_control_flow(self):
        x = np.arange(5, dtype=np.float32)

        def twice(v):
            return pure(lambda u: np.asarray(u) * 2, v)

        np.testing.assert_array_equal(
            run(lambda a: jax.lax.scan(lambda c, r: (twice(c), c + r), a[1], a)[1], x),
            [1, 3, 6, 11, 20])
        self.assertEqual(run(lambda a: jax.lax.while_loop(lambda c: c < 100, twice, a[3]), x), 192)
        self.assertEqual(run(lambda a: jax.lax.while_loop(
            lambda c: jax.pure_callback(lambda u: np.asarray(u < 20),
                                        jax.ShapeDtypeStruct((), np.bool_), c),
            lambda c: c + 3, a[0]), x), 21)
        for i in range(2):
            self.assertEqual(run(lambda a, i: jax.lax.cond(i == 1, twice, lambda v: v, a[2]), x, i),
                             2 + 2 * i)
        np.testing.assert_array_equal(run(lambda a: jax.lax.fori_loop(0, 3, lambda i, c: twice(c), a),
                                          x), x * 8)

    def test_gradient_of_a_custom_rule(self):
        @jax.custom_jvp
        def sine(x):
            return pure(np.sin, x, vmap_method='expand_dims')

        sine.defjvp(lambda primals, tangents: (
            sine(primals[0]), pure(np.cos, primals[0], vmap_method='expand_dims') * tangents[0]))
        x = np.linspace(0, 1, 5, dtype=np.float32)
        np.testing.assert_allclose(run(jax.vmap(jax.grad(sine)), x), np.cos(x), rtol=1e-6)
        with self.assertRaisesRegex(ValueError, 'do not support JVP'):
            jax.jit(jax.grad(lambda v: pure(np.sin, v)))(1.0)

    def test_sharding(self):
        x = np.arange(4, dtype=np.float32)
        sharding = jax.sharding.SingleDeviceSharding(KILN)
        np.testing.assert_array_equal(run(lambda a: pure(lambda v: np.asarray(v) + 1, a,
                                                         sharding=sharding), x), x + 1)
        mesh = jax.make_mesh((1,), ('i',), devices=[KILN])
        spec = jax.sharding.PartitionSpec('i')
        np.testing.assert_array_equal(
            run(jax.shard_map(lambda a: pure(lambda v: np.asarray(v) + 1, a), mesh=mesh,
                              in_specs=spec, out_specs=spec),
                jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))), x + 1)


class EffectTest(unittest.TestCase):
    def printed(self, function, *args):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run(function, *args)
        return out.getvalue()

    def test_print(self):
        def show(x):
            jax.debug.print('x: {x} {}', x.sum(), x=x)
            return x

        self.assertEqual(self.printed(show, np.arange(3)), 'x: [0 1 2] 3\n')
        self.assertEqual(self.printed(jax.vmap(lambda a: jax.debug.print('{}', a)), np.arange(3)),
                         '0\n1\n2\n')
        self.assertEqual(self.printed(
            lambda a: jax.lax.fori_loop(0, 3, lambda i, c: (jax.debug.print('{}', i), c)[1], a), 0),
            '0\n1\n2\n')
        self.assertIn('2.0', self.printed(
            jax.grad(lambda v: (jax.debug.print('{}', v), v ** 2)[1]), np.float32(2)))

    def test_calls_in_the_order_of_their_executions(self):
        seen = []
        f = jax.jit(lambda i: io_callback(lambda v: seen.append(int(v)), None, i))
        for i in range(50):
            f(i)
        jax.effects_barrier()
        self.assertEqual(seen, list(range(50)))

    def test_ordered_effects(self):
        seen = []

        def note(v):
            seen.append(int(v))
            return np.int32(v + 1)

        def noted(v):
            return io_callback(note, jax.ShapeDtypeStruct((), np.int32), v, ordered=True)

        f = jax.jit(lambda v: noted(noted(noted(v))))
        for i in range(0, 30, 10):
            self.assertEqual(int(f(i)), i + 3)
        jax.effects_barrier()
        self.assertEqual(seen, [0, 1, 2, 10, 11, 12, 20, 21, 22])
        seen.clear()
        run(lambda v: jax.lax.scan(lambda c, u: (noted(u) * 0 + c, noted(c)), v, jnp.arange(4)), 50)
        self.assertEqual(seen, [0, 50, 1, 50, 2, 50, 3, 50])
        seen.clear()
        run(lambda v: jax.lax.while_loop(lambda c: c < 5, noted, v), 2)
        run(lambda v: jax.lax.cond(v > 1, noted, lambda u: noted(u * 10), v), 1)
        self.assertEqual(seen, [2, 3, 4, 10])

    def test_ordered_prints(self):
        def show(v):
            for i in range(5):
                jax.debug.print('{} {}', i, v, ordered=True)
            return v + 1

        self.assertEqual(self.printed(lambda v: show(show(v)), 7),
                         ''.join(f'{i} {v}\n' for v in (7, 8) for i in range(5)))

    def test_a_failure_of_an_ordered_effect(self):
        should_fail = [True]

        def may_fail(v):
            if should_fail[0]:
                raise ValueError('out of order')
            return v

        f = jax.jit(lambda v: io_callback(may_fail, like(v), v, ordered=True))
        for again in (jax.effects_barrier, lambda: f(np.float32(2))):
            should_fail[0] = True
            with self.assertRaisesRegex(jax.errors.JaxRuntimeError, 'out of order'):
                jax.block_until_ready(f(np.float32(1)))
            should_fail[0] = False
            with self.assertRaisesRegex(jax.errors.JaxRuntimeError, 'out of order'):
                again()
            self.assertEqual(float(f(np.float32(2))), 2)
            jax.effects_barrier()

    def test_the_barrier_waits(self):
        seen = []

        def slow(v):
            time.sleep(0.2)
            seen.append(int(v))

        jax.jit(lambda v: jax.debug.callback(slow, v))(4)
        jax.effects_barrier()
        self.assertEqual(seen, [4])

    def test_results_of_io(self):
        counter = iter(range(100))
        f = jax.jit(lambda: io_callback(lambda: np.int32(next(counter)),
                                        jax.ShapeDtypeStruct((), np.int32)))
        self.assertEqual([int(f()) for _ in range(5)], [0, 1, 2, 3, 4])

    def test_unused_pure_calls_are_not_made(self):
        calls = []
        run(lambda v: (pure(lambda u: calls.append(1) or u, v), v + 1)[1], np.float32(1))
        self.assertEqual(calls, [])

    def test_checkify(self):
        def divide(x, y):
            checkify.check(y != 0, 'division of {x} by zero', x=x)
            return x / y

        checked = jax.jit(checkify.checkify(divide))
        error, value = checked(6.0, 3.0)
        error.throw()
        self.assertEqual(float(value), 2)
        with self.assertRaisesRegex(checkify.JaxRuntimeError, 'division of 6.0 by zero'):
            checked(6.0, 0.0)[0].throw()
        jax.config.update('jax_experimental_unsafe_xla_runtime_errors', True)
        self.addCleanup(jax.config.update, 'jax_experimental_unsafe_xla_runtime_errors', False)
        with self.assertRaisesRegex(jax.errors.JaxRuntimeError, 'division of 5.0 by zero'):
            jax.block_until_ready(jax.jit(divide)(5.0, 0.0))
            jax.effects_barrier()
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            jax.effects_barrier()

    def test_a_solver_that_is_scipys(self):
        try:
            import scipy.sparse
        except ImportError:
            self.skipTest('without SciPy')
        from jax.experimental.sparse.linalg import spsolve  # its rule comes after Kiln's

        a = np.eye(4, dtype=np.float32) * 3 + np.eye(4, k=1, dtype=np.float32)
        csr, b = scipy.sparse.csr_matrix(a), np.arange(4, dtype=np.float32)
        np.testing.assert_allclose(run(spsolve, csr.data, csr.indices, csr.indptr, b),
                                   np.linalg.solve(a, b), rtol=1e-5)

    def test_nans_are_found(self):
        with jax.debug_nans(True):
            with self.assertRaises(FloatingPointError):
                jax.block_until_ready(jax.jit(lambda v: jnp.log(v))(-1.0))


class FailureTest(unittest.TestCase):
    def setUp(self):
        logger = __import__('logging').getLogger('jax._src.callback')
        logger.disabled = True
        self.addCleanup(setattr, logger, 'disabled', False)

    def test_exceptions(self):
        should_fail = [True]

        def fails(v):
            if should_fail[0]:
                raise ValueError('a sentence of the callback')
            return v

        f = jax.jit(lambda v: pure(fails, v) + 1)
        for _ in range(3):
            with self.assertRaisesRegex(jax.errors.JaxRuntimeError, 'INTERNAL') as caught:
                jax.block_until_ready(f(np.float32(1)))
            self.assertIn('ValueError: a sentence of the callback', str(caught.exception))
            self.assertIn('in fails', str(caught.exception))
            self.assertIn('callbacks_test.py', str(caught.exception))
        should_fail[0] = False
        self.assertEqual(float(f(np.float32(1))), 2)

    def test_exceptions_of_effects(self):
        def fails(v):
            raise KeyError('an effect')

        with self.assertRaisesRegex(jax.errors.JaxRuntimeError, 'an effect'):
            jax.jit(lambda v: io_callback(fails, None, v))(1.0)
            jax.effects_barrier()
        self.assertEqual(float(jnp.ones(3).sum()), 3)

    def test_an_exit_is_an_error(self):
        with self.assertRaisesRegex(jax.errors.JaxRuntimeError, 'SystemExit: 3'):
            jax.block_until_ready(jax.jit(lambda v: pure(lambda u: sys.exit(3), v))(1.0))

    def test_results_of_another_shape_or_type(self):
        x = np.ones(2, np.float32)
        for function, text in (
                (lambda v: np.ones(3, np.float32), r'Incorrect output shape for return value #0: '
                                                   r'Expected: \(2,\), Actual: \(3,\)'),
                (lambda v: np.ones(2, np.int32), 'Incorrect output dtype for return value #0: '
                                                 'Expected: float32, Actual: int32'),
                (lambda v: (np.asarray(v), np.asarray(v)), 'Mismatched number of outputs'),
                (lambda v: 'text', 'TypeError|Incorrect output')):
            with self.assertRaisesRegex(jax.errors.JaxRuntimeError, text):
                jax.block_until_ready(jax.jit(lambda v, function=function: pure(function, v))(x))

    def test_several_platforms(self):
        with self.assertRaisesRegex(NotImplementedError, 'multi-platform'):
            jax.export.export(jax.jit(lambda v: pure(np.sin, v)), platforms=['kiln', 'cpu'])(1.0)


class NestingTest(unittest.TestCase):
    def test_programs_inside_of_callbacks(self):
        x = np.arange(4, dtype=np.float32)
        inner = jax.jit(lambda v: jnp.sin(v) @ jnp.ones((4, 4)))

        def on(device):
            def call(v):
                u = jax.device_put(np.asarray(v), device)
                y = inner(u) + 1
                assert y.devices() == {device}, y.devices()
                return np.asarray(y)
            return call

        expected = np.sin(x) @ np.ones((4, 4)) + 1
        for device in (KILN, CPU):
            for _ in range(3):
                np.testing.assert_allclose(run(lambda a, d=device: pure(on(d), a), x), expected,
                                           rtol=1e-5)

    def test_callbacks_inside_of_callbacks(self):
        seen = []

        def deeper(depth):
            @jax.jit
            def f(v):
                def call(u):
                    seen.append(depth)
                    u = jax.device_put(np.asarray(u), KILN)
                    return np.asarray(u + 1 if depth == 0 else deeper(depth - 1)(u))
                return pure(call, v) * 2
            return f

        self.assertEqual(float(deeper(3)(np.float32(1))), (1 + 1) * 16)
        self.assertEqual(seen, [3, 2, 1, 0])

    def test_a_callback_waits_for_another_program(self):
        """The program is made and run while the callback goes on, by another thread."""
        may_end, results = threading.Event(), []

        def waits(v):
            assert may_end.wait(60)
            return np.asarray(v)

        y = jax.jit(lambda v: pure(waits, v))(np.float32(3))
        z = y + 1
        other = jax.jit(lambda v: v * 5)(jnp.ones(100_000))
        self.assertEqual(float(other[3]), 5)
        self.assertFalse(z.is_ready())
        del other
        may_end.set()
        self.assertEqual(float(z), 4)
        self.assertEqual(results, [])

    def test_donation_of_an_array_that_a_callback_reads(self):
        may_end = threading.Event()

        def waits(v):
            assert may_end.wait(60)
            return np.asarray(v)

        x = jnp.arange(50_000.0) + 0
        y = jax.jit(lambda v: pure(waits, v) + v)(x)
        z = jax.jit(lambda v: v * 0, donate_argnums=0)(x)
        may_end.set()
        np.testing.assert_array_equal(y, 2 * np.arange(50_000.0))
        np.testing.assert_array_equal(z, np.zeros(50_000))

    def test_threads(self):
        def work(number):
            f = jax.jit(lambda v: pure(lambda u: np.asarray(u) * number, v) + jnp.sin(v))
            g = jax.jit(lambda v: jnp.cos(v) + number)
            x = np.arange(300, dtype=np.float32)
            for i in range(40):
                np.testing.assert_allclose(f(x + i), (x + i) * number + np.sin(x + i), rtol=1e-4,
                                           atol=1e-5)
                np.testing.assert_allclose(g(x), np.cos(x) + number, rtol=1e-5, atol=1e-5)

        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(8)))


class BufferTest(unittest.TestCase):
    """jax.experimental.buffer_callback."""

    def test_results_are_written_in_place(self):
        def both(context, out, x, *, y):
            self.assertEqual(context.stage, buffer_callback.ExecutionStage.EXECUTE)
            with self.assertRaisesRegex(jax.errors.JaxRuntimeError, 'UNIMPLEMENTED'):
                _ = context.stream
            sums, flags = np.asarray(out['sums']), np.asarray(out['flags'])
            np.add(np.asarray(x), np.from_dlpack(y), out=sums)
            flags[...] = sums > 3

        x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([[0, 1, 2]] * 2)
        call = buffer_callback.buffer_callback(
            both, {'sums': like(x), 'flags': jax.ShapeDtypeStruct(x.shape, np.bool_)})
        result = run(lambda x, y: call(x * 2, y=y), x, y)
        np.testing.assert_array_equal(result['sums'], 2 * x + y)
        np.testing.assert_array_equal(result['flags'], 2 * x + y > 3)
        np.testing.assert_array_equal(call(x, y=jnp.asarray(y))['sums'], x + y)

    def test_buffers(self):
        def look(context, out, x):
            for buffer, writeable in ((x, False), (out, True)):
                seen.append((buffer.shape, buffer.dtype, buffer.ndim))
                self.assertIs(buffer.writeable, writeable)
                self.assertIs(np.asarray(buffer).flags.writeable, writeable)
                self.assertTrue(np.shares_memory(np.asarray(buffer), np.asarray(buffer)))
                self.assertFalse(np.shares_memory(np.array(buffer), np.asarray(buffer)))
                self.assertEqual(np.asarray(buffer, np.float64).dtype, np.float64)
                self.assertEqual(buffer.__dlpack_device__(), (1, 0))
            np.asarray(out)[...] = np.asarray(x)

        for kind in (jnp.bool_, jnp.int8, jnp.uint16, jnp.float16, jnp.bfloat16, jnp.complex64):
            for shape in ((), (3,), (2, 3, 4)):
                x, seen = jnp.ones(shape, kind), []
                y = buffer_callback.buffer_callback(look, like(x))(x)
                np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
                self.assertEqual(seen, [(shape, x.dtype, len(shape))] * 2)

    def test_aliases(self):
        def increment(context, out, x):
            np.asarray(out)[1:] += 1

        x = np.arange(4, dtype=np.float32)
        call = buffer_callback.buffer_callback(increment, like(x), input_output_aliases={0: 0})
        np.testing.assert_array_equal(run(lambda x: (call(x), x), x), ([0, 2, 3, 4], x))

    def test_effects_and_vmap(self):
        seen = []
        call = buffer_callback.buffer_callback(lambda context, out, x: seen.append(x.shape), (),
                                               has_side_effect=True)
        run(lambda x: call(x), np.ones(3))
        self.assertEqual(seen, [(3,)])
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for method, shape in (('sequential', (3,)), ('broadcast_all', (2, 3))):
            def double(context, out, v, shape=shape):
                self.assertEqual(v.shape, shape)
                np.asarray(out)[...] = 2 * np.asarray(v)

            call = buffer_callback.buffer_callback(double, like(x[0]), vmap_method=method)
            np.testing.assert_array_equal(run(jax.vmap(call), x), 2 * x)

    def test_failures(self):
        def fails(context, out, x):
            raise ValueError('a sentence of the callback')

        for function, text in ((fails, 'ValueError: a sentence of the callback'),
                               (lambda context, out, x: 1, 'must not return any values')):
            call = buffer_callback.buffer_callback(function, like(np.ones(3)))
            with self.assertRaisesRegex(jax.errors.JaxRuntimeError, text):
                jax.block_until_ready(call(np.ones(3)))


class LifetimeTest(unittest.TestCase):
    def gone(self, *references):
        """Whether the objects are freed, when JAX has dropped what it may."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            gc.collect()
            if all(r() is None for r in references):
                return True
            time.sleep(0.02)
        return False

    def test_callables_are_released_with_their_executables(self):
        from jax_plugins.kiln import callbacks

        jax.clear_caches()
        gc.collect()
        before, references = len(callbacks._callables), []
        for i in range(200):
            def function(v, i=i):
                return np.asarray(v) + i

            f = jax.jit(lambda v, function=function: pure(function, v))
            self.assertEqual(float(f(1.0)), 1 + i)
            references.append(weakref.ref(function))
            del f, function
        jax.clear_caches()
        self.assertTrue(self.gone(*references))
        self.assertLessEqual(len(callbacks._callables), before)  # weak references

    def test_executions_keep_their_callables(self):
        may_begin, seen = threading.Event(), []

        def first(v):
            assert may_begin.wait(60)
            return v

        def second(v):
            seen.append(int(v))

        reference = weakref.ref(second)
        jax.jit(lambda v: io_callback(first, like(v), v))(np.float32(1))
        jax.jit(lambda v: io_callback(second, None, v))(7)
        del second
        jax.clear_caches()
        gc.collect()
        may_begin.set()
        jax.effects_barrier()
        self.assertEqual(seen, [7])
        self.assertTrue(self.gone(reference))

    def test_programs_with_callbacks_are_not_cached_on_disk(self):
        def compiled(number):
            return jax.jit(lambda v: pure(lambda u: np.asarray(u) + number, v))

        self.assertEqual(float(compiled(1)(1.0)), 2)
        jax.clear_caches()
        self.assertEqual(float(compiled(2)(1.0)), 3)
        lowered = compiled(3).lower(1.0)
        self.assertEqual(len(lowered._lowering.compile_args['host_callbacks']), 1)
        self.assertEqual(float(lowered.compile()(1.0)), 4)


class ProcessTest(unittest.TestCase):
    """Processes of their own, up to their end."""

    def python(self, code, platforms='kiln,cpu', expected=0):
        made = subprocess.run([sys.executable, '-P', '-c', 'import jax, numpy as np, time\n' + code],
                              env={**os.environ, 'JAX_PLATFORMS': platforms}, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(made.returncode, expected, made.stderr)
        return made.stdout

    def test_kiln_alone(self):
        self.assertEqual(self.python(
            'print(jax.default_backend(), jax.jit(lambda x: jax.pure_callback(np.sin, x, x))(0.))\n'
            'print([d.platform for d in jax.devices("cpu")][0])', 'kiln'), 'kiln 0.0\ncpu\n')

    def test_effects_are_over_at_the_end(self):
        self.assertEqual(self.python(
            'def slow(x):\n  time.sleep(0.3); print("seen", x, flush=True)\n'
            'jax.jit(lambda x: jax.debug.callback(slow, x))(3)'), 'seen 3\n')

    def test_the_end_during_a_call(self):
        self.python('y = jax.jit(lambda x: jax.pure_callback(lambda v: (time.sleep(0.3), v)[1], x, x)'
                    ')(3.)\nz = [y + i for i in range(10)]')

    def test_the_end_of_the_clients(self):
        self.python('import jax.extend\n'
                    'def slow(v):\n  time.sleep(0.3); return v\n'
                    'jax.jit(lambda x: jax.pure_callback(slow, x, x))(3.)\n'
                    'jax.clear_caches(); jax.extend.backend.clear_backends()\n'
                    'print(jax.numpy.ones(3).sum())')

    def test_a_failure_at_the_end(self):
        self.python('def fails(x): raise ValueError("late")\n'
                    'jax.jit(lambda x: jax.debug.callback(fails, x))(3)')


class NameTest(unittest.TestCase):
    """What the package uses of JAX's inside. Where JAX has changed it, jax_plugins/kiln must be
    changed, too."""

    def test_lowering_of_callbacks(self):
        from jax._src import callback, config, dispatch
        from jax._src.interpreters import mlir
        from jax.interpreters import mlir as public

        wrapped = callback.emit_python_callback
        self.assertIs(public.emit_python_callback, wrapped)
        self.assertEqual(list(inspect.signature(wrapped).parameters)[:3],
                         ['ctx', 'callback', 'token'])
        for name in ('platforms', 'backend', 'host_callbacks'):
            self.assertIn(name, mlir.ModuleContext.__annotations__, name)
        self.assertIn('module_context', mlir.LoweringRuleContext.__annotations__)
        self.assertTrue(hasattr(config, 'jax_platforms') and hasattr(config, 'update'))
        self.assertIn('current_tokens', dispatch.RuntimeTokenSet.__annotations__)
        self.assertEqual(list(inspect.signature(dispatch.RuntimeTokenSet.get_token_input).parameters),
                         ['self', 'eff', 'devices'])
        self.assertIn('cpu', mlir._platform_specific_lowerings)
        self.assertIs(mlir._platform_specific_lowerings['kiln'].cpu,
                      mlir._platform_specific_lowerings['cpu'])
        self.assertIn('kiln', mlir._platforms_with_donation)
        text = jax.jit(lambda v: pure(np.sin, v)).lower(1.0).as_text()
        self.assertIn('@kiln_python_callback', text)
        self.assertNotIn('mhlo.backend_config', text)


if __name__ == '__main__':
    unittest.main()
