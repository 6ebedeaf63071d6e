"""JAX on Kiln. The environment has JAX_PLATFORMS=kiln,cpu, the package on PYTHONPATH, and
KILN_PJRT_LIBRARY. Exit code 77 without JAX."""

import concurrent.futures
import inspect
import re
import sys
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.extend
import jax.numpy as jnp
import numpy as np

CPU = jax.devices('cpu')[0]


def on_cpu(function, *args):
    """The function's result by XLA's own CPU."""
    return jax.tree.map(np.asarray, jax.jit(function)(*jax.device_put(args, CPU)))


class Same(unittest.TestCase):
    def same(self, function, *args, tolerance=1e-5):
        got = jax.tree.map(np.asarray, jax.jit(function)(*args))
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(on_cpu(function, *args)),
                        strict=True):
            self.assertEqual(a.dtype, b.dtype)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


class PlatformTest(Same):
    def test_kiln_is_the_default(self):
        self.assertEqual(jax.default_backend(), 'kiln')
        device, = jax.devices('kiln')
        self.assertEqual(device.platform, 'kiln')
        self.assertEqual(device.default_memory().kind, 'device')
        self.assertIn('Kiln 0.', jax.extend.backend.get_backend('kiln').platform_version)

    def test_memory_is_reported(self):
        x = jnp.zeros(1 << 20)
        jax.block_until_ready(x)
        self.assertGreaterEqual(jax.devices('kiln')[0].memory_stats()['bytes_in_use'], 4 << 20)

    def test_cost_and_memory_of_a_program(self):
        compiled = jax.jit(lambda x: x @ x).lower(jnp.ones((8, 8))).compile()
        self.assertEqual(compiled.memory_analysis().output_size_in_bytes, 256)


class ProgramTest(Same):
    def test_op_by_op(self):
        x = jnp.arange(6.0).reshape(2, 3)
        np.testing.assert_allclose(x @ x.T + jnp.sin(x).sum(), np.asarray(x) @ np.asarray(x).T +
                                   np.sin(np.asarray(x)).sum(), rtol=1e-5)

    def test_jit_grad_vmap_scan(self):
        x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
        self.same(lambda a: jnp.tanh(a) @ a.T, x)
        self.same(jax.grad(lambda a: jnp.sum(jnp.exp(a) * jnp.cos(a))), x)
        self.same(jax.vmap(jax.hessian(lambda a: jnp.sum(a ** 3))), x)
        self.same(lambda a: jax.lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), a), x)
        self.same(lambda a: jax.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2),
                                               (0, a)), x)

    def test_random_numbers_are_those_of_cpu(self):
        def draw(seed):
            key = jax.random.key(seed)
            return jax.random.normal(key, (7,)), jax.random.randint(key, (5,), 0, 100)
        self.same(draw, np.int32(3))

    def test_element_types(self):
        for dtype in (jnp.bool_, jnp.int4, jnp.uint8, jnp.int16, jnp.uint32, jnp.float16,
                      jnp.bfloat16, jnp.float8_e4m3fn, jnp.complex64):
            x = np.array([0, 1, 1, 0]).astype(dtype)
            y = np.asarray(jax.jit(lambda a: jnp.flip(a))(x))
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x[::-1])

    def test_linear_algebra(self):
        a = np.random.default_rng(0).normal(size=(2, 5, 5)).astype(np.float32)
        spd = a @ a.transpose(0, 2, 1) + 5 * np.eye(5, dtype=np.float32)
        self.same(jnp.linalg.cholesky, spd)
        self.same(jnp.linalg.inv, spd)
        self.same(lambda m: jnp.abs(jnp.linalg.qr(m)[1]), a, tolerance=1e-4)
        self.same(jnp.linalg.slogdet, spd)

    def test_eigenvalues_and_singular_values(self):
        a = np.random.default_rng(2).normal(size=(2, 5, 5)).astype(np.float32)
        self.same(lambda m: jnp.linalg.eigvalsh(m + m.mT), a, tolerance=1e-4)
        self.same(lambda m: jnp.linalg.svd(m, compute_uv=False), a, tolerance=1e-4)
        self.same(jax.grad(lambda m: jnp.linalg.norm(m, 'nuc', axis=(-2, -1)).sum()), a,
                  tolerance=1e-3)
        self.same(jax.lax.linalg.tridiagonal_solve, a[0, 0], a[0, 1] + 5, a[0, 2], a[1])

    def test_sparse_products(self):
        from jax.experimental import sparse

        a = np.eye(5, 4, dtype=np.float32) * np.arange(1, 6, dtype=np.float32)[:, None]
        b = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
        for kind in (sparse.BCOO, sparse.BCSR):
            np.testing.assert_allclose(jax.jit(lambda m, v: m @ v)(kind.fromdense(a), b), a @ b,
                                       rtol=1e-6)

    def test_training_of_a_perceptron(self):
        generator = np.random.default_rng(1)
        weights = [generator.normal(size=s).astype(np.float32) * 0.3
                   for s in ((8, 16), (16,), (16, 3), (3,))]
        x = generator.normal(size=(32, 8)).astype(np.float32)
        y = generator.integers(0, 3, 32)

        def loss(w, x, y):
            h = jax.nn.gelu(x @ w[0] + w[1])
            return -jnp.mean(jax.nn.log_softmax(h @ w[2] + w[3])[jnp.arange(32), y])

        def step(w, x, y):
            value, gradient = jax.value_and_grad(loss)(w, x, y)
            return value, [a - 0.5 * g for a, g in zip(w, gradient)]

        ours, theirs = jax.jit(step, donate_argnums=0), jax.jit(step)
        mine, reference = list(map(jnp.array, weights)), jax.device_put(weights, CPU)
        for _ in range(20):
            value, mine = ours(mine, x, y)
            expected, reference = theirs(reference, *jax.device_put((x, y), CPU))
        self.assertLess(float(value), 0.7)
        self.assertAlmostEqual(float(value), float(expected), places=3)


class BufferTest(Same):
    def test_numpy_arrays_of_all_strides(self):
        base = np.arange(2 * 3 * 4, dtype=np.int32).reshape(2, 3, 4)
        for array in (base.T, base[:, ::-1], base[..., 1:3], np.broadcast_to(base[:, :1], base.shape),
                      base[:0], base[0, 0, 0], np.arange(100000, dtype=np.float32)[::-2]):
            np.testing.assert_array_equal(np.asarray(jax.device_put(array)), array)

    def test_large_arrays_are_borrowed_and_not_written(self):
        host = np.ones(1 << 16, np.float32)
        x = jax.device_put(host)
        f = jax.jit(lambda a: a + 1, donate_argnums=0)
        self.assertEqual(float(f(x)[5]), 2.0)
        np.testing.assert_array_equal(host, np.ones(1 << 16, np.float32))

    def test_integers_of_less_than_a_byte(self):
        # NumPy's int4 has its value in the low bits of a byte, and zeros above.
        for dtype, values in ((jnp.int4, range(-8, 8)), (jnp.uint4, range(16)),
                              (jnp.int2, range(-2, 2)), (jnp.uint2, range(4))):
            x = np.array(values, dtype).reshape(2, -1)
            for array in (x, x.T, x[:, ::-1], x[:0], x[1, 1]):
                got = jnp.asarray(array).astype(jnp.int32)
                np.testing.assert_array_equal(got, array.astype(np.int32))
        y = np.array([-8, 3, -1], jnp.int4)
        np.testing.assert_array_equal(jax.lax.sort(jnp.asarray(y)).astype(jnp.int32), [-8, -1, 3])

    def test_sums_of_products_are_of_the_type_asked_for(self):
        for dtype in (np.uint8, np.bool_, np.int8):
            x = np.ones((3, 300), dtype)
            for wanted in (np.int32, np.float32):
                got = jax.lax.dot(x, x.T, preferred_element_type=wanted)
                np.testing.assert_array_equal(got, np.full((3, 3), 300, wanted))

    def test_algorithms_of_products(self):
        x = jnp.asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4) / 8)  # exact in bf16
        for name in ('TF32_TF32_F32', 'BF16_BF16_F32_X9', 'F16_F16_F32', 'F32_F32_F32',
                     'BF16_BF16_BF16'):
            got = jax.jit(lambda a: jax.lax.dot(a, a.T, precision=name))(x)
            np.testing.assert_allclose(got, np.asarray(x) @ np.asarray(x).T, rtol=1e-2)

    def test_a_value_that_is_not_to_vanish(self):
        from jax._src import lax
        if 'prevent_mlir_dce' not in inspect.signature(lax.lax.dce_sink).parameters:
            self.skipTest('JAX from 0.10 on keeps such values')

        def function(a):
            lax.lax.dce_sink(a + 1, prevent_mlir_dce=True)
            return a * 2
        np.testing.assert_array_equal(jax.jit(function)(jnp.ones(3)), np.full(3, 2))

    def test_misaligned_memory(self):
        raw = np.zeros(4 * 30000 + 1, np.uint8)
        array = raw[1:].view(np.float32)
        self.assertEqual(float(jnp.sum(jax.device_put(array) + 1)), 30000)

    def test_donation(self):
        f = jax.jit(lambda a, b: (a + b, b * 2), donate_argnums=0)
        a, b = jnp.ones((64, 64)), jnp.ones((64, 64))
        address = a.unsafe_buffer_pointer()
        c, _ = f(a, b)
        self.assertTrue(a.is_deleted())
        self.assertFalse(b.is_deleted())
        self.assertEqual(jax.block_until_ready(c).unsafe_buffer_pointer(), address)
        with self.assertRaisesRegex(RuntimeError, 'deleted'):
            a + 1

    def test_the_same_array_twice_with_donation(self):
        a = jax.block_until_ready(jnp.ones((64, 64)))
        for donated, example in ((0, 'f(donate(a), a)'), (1, 'f(a, donate(a))'),
                                 ((0, 1), 'f(donate(a), donate(a))')):
            f = jax.jit(lambda a, b: (a + b, a - b), donate_argnums=donated)
            with self.assertRaisesRegex(RuntimeError, 'Attempt to .*' + re.escape(example)):
                f(a, a)
            self.assertEqual(float(a[0, 0]), 1)  # a refused execution takes nothing

    def test_values_read_in_place_stay(self):
        x = jax.block_until_ready(jnp.arange(1 << 15) + 0)
        view = np.asarray(x)
        self.assertEqual(view.ctypes.data, x.unsafe_buffer_pointer())
        y = jax.jit(lambda a: a * 2, donate_argnums=0)(x)
        self.assertTrue(x.is_deleted())
        np.testing.assert_array_equal(y, np.arange(1 << 15) * 2)
        np.testing.assert_array_equal(view, np.arange(1 << 15))
        z = jax.block_until_ready(jnp.arange(1 << 15) + 1)
        view = np.asarray(z)
        z.delete()
        others = [jnp.zeros(1 << 15) for _ in range(8)]
        jax.block_until_ready(others)
        np.testing.assert_array_equal(view, np.arange(1 << 15) + 1)

    def test_delete(self):
        a = jnp.ones(1000)
        b = a + 1
        a.delete()
        self.assertTrue(a.is_deleted())
        np.testing.assert_array_equal(b, np.full(1000, 2, np.float32))

    def test_copies_between_platforms(self):
        x = jnp.arange(10.0)
        y = jax.device_put(x, CPU)
        self.assertEqual(y.devices(), {CPU})
        np.testing.assert_array_equal(jax.device_put(y, jax.devices('kiln')[0]), x)
        np.testing.assert_array_equal(jnp.array(x, copy=True), x)


class FailureTest(unittest.TestCase):
    def test_the_text_of_an_error(self):
        with self.assertRaisesRegex(Exception, 'no_such_target'):
            jax.jit(lambda x: jax.ffi.ffi_call('no_such_target', jax.ShapeDtypeStruct(
                (2,), jnp.float32))(x))(jnp.ones(2))

    def test_mistaken_options(self):
        lowered = jax.jit(lambda x: x + 1).lower(jnp.ones(2))
        with self.assertRaisesRegex(Exception, "No such compile option: 'invalid_key'"):
            lowered.compile(compiler_options={'invalid_key': 'x'})
        with self.assertRaisesRegex(Exception, 'is not a valid bool value'):
            lowered.compile(compiler_options={'xla_embed_ir_in_executable': 'x'})
        compiled = lowered.compile(compiler_options={'xla_embed_ir_in_executable': True})
        self.assertEqual(float(compiled(jnp.ones(2))[0]), 2)

    def test_a_limit_of_the_memory(self):
        x = jnp.ones((256, 256))
        lowered = jax.jit(lambda x: jnp.sum(jnp.dot(jnp.dot(x, x), x))).lower(x)
        compiled = lowered.compile(compiler_options={'kiln_memory_limit_bytes': 1 << 30})
        self.assertEqual(float(compiled(x)), 256.0**4)
        with self.assertRaisesRegex(Exception, 'their limit is 1000'):
            lowered.compile(compiler_options={'kiln_memory_limit_bytes': 1000})
        with self.assertRaisesRegex(Exception, 'is not a valid int64 value'):
            lowered.compile(compiler_options={'kiln_memory_limit_bytes': 'x'})


class ThreadTest(unittest.TestCase):
    def test_threads_compile_and_run(self):
        def work(number):
            f = jax.jit(lambda a: jnp.sum(jnp.sin(a * number)) + number)
            x = jnp.arange(2000.0 + number)
            for _ in range(50):
                got = float(f(x))
            expected = np.sin(np.arange(2000.0 + number) * number).sum() + number
            self.assertLessEqual(abs(got - expected), 0.05, number)

        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(8)))

    def test_results_are_used_before_they_are_ready(self):
        x = jnp.ones((300, 300))
        for _ in range(100):
            x = x @ x / 300
        np.testing.assert_allclose(np.asarray(x)[0, 0], 1, rtol=1e-3)


if __name__ == '__main__':
    unittest.main()
