"""jax.ffi on Kiln: handlers compiled with jaxlib's headers (ffi_handlers.cc). The environment is
that of plugin_test.py. Exit code 77 without JAX, its headers or a compiler."""

import ctypes
import functools
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.numpy as jnp
import numpy as np

COMPILER = shutil.which('c++') or shutil.which('g++') or shutil.which('clang++')
if not COMPILER or not os.path.exists(os.path.join(jax.ffi.include_dir(), 'xla/ffi/api/ffi.h')):
    print('skipped: no compiler, or no headers')
    sys.exit(77)

jax.config.update('jax_enable_x64', True)
HERE = pathlib.Path(__file__).resolve().parent


def build(folder):
    path = os.path.join(folder, 'handlers.so')
    subprocess.run([COMPILER, '-std=c++17', '-shared', '-fPIC', '-O1', '-w',
                    '-I' + jax.ffi.include_dir(), str(HERE / 'ffi_handlers.cc'), '-o', path],
                   check=True)
    library = ctypes.CDLL(path)
    library.counter_id.restype = library.counter_info.restype = ctypes.c_void_p
    library.live_counters.restype = library.sum_of_effects.restype = ctypes.c_int64
    return library


def capsule(address):
    return jax.ffi.pycapsule(ctypes.c_void_p(address))


FOLDER = tempfile.TemporaryDirectory()
LIBRARY = build(FOLDER.name)


def register(name, api_version=1):
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(LIBRARY, name)), platform='kiln',
                                api_version=api_version)


# Before there is a client.
for target in ('axpb', 'describe', 'copy', 'fail', 'context', 'later', 'increment', 'effect'):
    register(target)
jax.ffi.register_ffi_type('counter', {'type_id': capsule(LIBRARY.counter_id()),
                                      'type_info': capsule(LIBRARY.counter_info())},
                          platform='kiln')
jax.ffi.register_ffi_target('count', {'instantiate': jax.ffi.pycapsule(LIBRARY.make_counter),
                                      'execute': jax.ffi.pycapsule(LIBRARY.count)},
                            platform='kiln')
jnp.zeros(1).block_until_ready()
# And after it.
for target in ('original', 'with_status', 'with_text'):
    register(target, api_version=0)


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


class LayoutTest(unittest.TestCase):
    def test_declarations_are_those_of_the_header(self):
        printed = []
        for header, folder in (('plugin/ffi/api.h', str(HERE.parent)),
                               ('xla/ffi/api/c_api.h', jax.ffi.include_dir())):
            program = os.path.join(FOLDER.name, 'layout')
            subprocess.run([COMPILER, '-std=c++20', f'-DKILN_TEST_HEADER="{header}"',
                            '-I' + folder, str(HERE / 'ffi_layout.cc'), '-o', program],
                           check=True)
            printed.append(subprocess.run([program], check=True, stdout=subprocess.PIPE,
                                          text=True).stdout.splitlines())
        ours, theirs = printed
        self.assertGreater(len(theirs), 180)
        self.assertEqual([line for line in theirs if line not in ours], [])


class HandlerTest(unittest.TestCase):
    def test_arrays_and_attributes(self):
        x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
        b = np.array([0.5], np.float32)

        def call(x):
            return jax.ffi.ffi_call('axpb', like(x), vmap_method='broadcast_all')(
                x * 2, a=np.float32(3), b=b) - 1
        np.testing.assert_array_equal(jax.jit(call)(x), np.asarray(x) * 6 - 0.5)
        np.testing.assert_array_equal(call(x), np.asarray(x) * 6 - 0.5)
        np.testing.assert_array_equal(jax.vmap(call)(x), np.asarray(x) * 6 - 0.5)

    def test_batches(self):
        x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
        for method in ('sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all'):
            def call(x, method=method):
                return jax.ffi.ffi_call('axpb', like(x), vmap_method=method)(
                    x, a=np.float32(2), b=np.ones(1, np.float32))
            np.testing.assert_array_equal(jax.jit(jax.vmap(call))(x), np.asarray(x) * 2 + 1)

    def test_attributes_of_all_types(self):
        attributes = dict(boolean=True, i8=np.int8(-8), i16=np.int16(-16), i32=np.int32(-32),
                          i64=np.int64(-64), u8=np.uint8(200), u16=np.uint16(60000),
                          u32=np.uint32(4000000000), u64=np.uint64(2**40),
                          f32=np.float32(0.25), f64=np.float64(-1.5), string='a "text"\n',
                          array=np.array([1, -2, 3]), dictionary=dict(inner=5, other='x'))
        text = jax.jit(lambda: jax.ffi.ffi_call('describe', jax.ShapeDtypeStruct(
            (400,), jnp.uint8))(**attributes))()
        self.assertEqual(
            bytes(np.asarray(text)).rstrip(b'\0').decode(),
            'boolean=1;i8=-8;i16=-16;i32=-32;i64=-64;u8=200;u16=60000;u32=4000000000;'
            'u64=1099511627776;f32=0.250000;f64=-1.500000;string=a "text"\n;'
            'array=1;array=-2;array=3;inner=5;size=2;')

    def test_element_types(self):
        for number, dtype in ((1, jnp.bool_), (2, jnp.int8), (9, jnp.uint64), (10, jnp.float16),
                              (16, jnp.bfloat16), (12, jnp.float64), (15, jnp.complex64),
                              (18, jnp.complex128), (20, jnp.float8_e4m3fn)):
            x = jnp.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
            facts = jax.ShapeDtypeStruct((3,), jnp.int64)
            y, facts = jax.jit(lambda x, f=facts: jax.ffi.ffi_call('copy', (like(x), f))(x))(x)
            np.testing.assert_array_equal(y, x)
            self.assertEqual(np.asarray(facts).tolist(), [number, 2, 6])

    def test_layouts(self):
        x = jnp.arange(24, dtype=jnp.float32).reshape(2, 3, 4)
        facts = jax.ShapeDtypeStruct((3,), jnp.int64)

        # The memory of one layout, copied to an array in another one.
        def call(x, inner, outer):
            return jax.ffi.ffi_call('copy', (like(x), facts), input_layouts=[inner],
                                    output_layouts=[outer, None])(x + 0)[0] * 1
        for inner in ((0, 1, 2), (0, 2, 1), (2, 0, 1)):
            for outer in ((0, 1, 2), (1, 2, 0)):
                y = jax.jit(call, static_argnums=(1, 2))(x, inner, outer)
                memory = np.ascontiguousarray(np.asarray(x).transpose(inner)).ravel()
                expected = memory.reshape([x.shape[d] for d in outer]).transpose(np.argsort(outer))
                np.testing.assert_array_equal(y, expected, f'{inner} {outer}')

    def test_aliases(self):
        x = jnp.arange(4, dtype=jnp.float32)

        def call(x):
            return jax.ffi.ffi_call('increment', like(x), input_output_aliases={0: 0})(x)
        np.testing.assert_array_equal(jax.jit(call)(x), [1, 2, 3, 4])
        np.testing.assert_array_equal(x, [0, 1, 2, 3])
        np.testing.assert_array_equal(jax.jit(call, donate_argnums=0)(x), [1, 2, 3, 4])
        self.assertTrue(x.is_deleted())

    def test_side_effects(self):
        before = LIBRARY.sum_of_effects()

        def call(x, has_side_effect):
            jax.ffi.ffi_call('effect', (), has_side_effect=has_side_effect)(x)
            return x + 1
        x = jnp.array([5])
        jax.block_until_ready(jax.jit(call, static_argnums=1)(x, False))
        self.assertEqual(LIBRARY.sum_of_effects(), before)
        jax.block_until_ready(jax.jit(call, static_argnums=1)(x, True))
        self.assertEqual(LIBRARY.sum_of_effects(), before + 5)

    def test_in_loops_and_branches(self):
        def body(x):
            return jax.ffi.ffi_call('axpb', like(x))(x, a=np.float32(2), b=np.ones(1, np.float32))
        x = jnp.zeros(2, jnp.float32)
        y = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda _, y: body(y), x))(x)
        np.testing.assert_array_equal(y, [31, 31])
        y = jax.jit(lambda x, p: jax.lax.cond(p, body, lambda x: x, x))(x, True)
        np.testing.assert_array_equal(y, [1, 1])


class FailureTest(unittest.TestCase):
    def test_errors_of_handlers(self):
        call = jax.jit(lambda: jax.ffi.ffi_call('fail', (), has_side_effect=True)(message='so so'))
        with self.assertRaisesRegex(Exception, 'FAILED_PRECONDITION.*so so'):
            jax.block_until_ready(call())
            jax.effects_barrier()
            jax.block_until_ready(jnp.ones(1) + 1)

    def test_wrong_calls(self):
        x = jnp.ones(2, jnp.float32)
        for attributes in ({}, {'a': np.float32(1)}, {'a': 1, 'b': np.ones(1, np.float32)}):
            with self.assertRaisesRegex(Exception, 'INVALID_ARGUMENT'):
                jax.block_until_ready(jax.jit(
                    lambda x, k=attributes: jax.ffi.ffi_call('axpb', like(x))(x, **k))(x))
        with self.assertRaisesRegex(Exception, 'custom_call_api_version 1, but registered'):
            jax.jit(lambda x: jax.ffi.ffi_call('axpb', like(x), custom_call_api_version=1)(x))(x)
        with self.assertRaisesRegex(Exception, "'nobody'"):
            jax.jit(lambda x: jax.ffi.ffi_call('nobody', like(x))(x))(x)

    def test_registrations(self):
        register('axpb')  # the same again
        other = jax.ffi.pycapsule(LIBRARY.copy)
        with self.assertRaisesRegex(RuntimeError, 'registered with other functions'):
            jax.ffi.register_ffi_target('axpb', other, platform='kiln')
        with self.assertRaisesRegex(ValueError, 'unknown stages'):
            jax.ffi.register_ffi_target('odd', {'run': other}, platform='kiln')
        with self.assertRaisesRegex(RuntimeError, 'execute stage'):
            jax.ffi.register_ffi_target('odd', {'prepare': other}, platform='kiln')
        # A stage of GPUs.
        copy = jax.ffi.pycapsule(LIBRARY.copy)
        jax.ffi.register_ffi_target('recorded', {'execute': copy, 'record': copy}, platform='kiln')


class ContextTest(unittest.TestCase):
    def test_states(self):
        result = jax.ShapeDtypeStruct((1,), jnp.int64)

        def counters(n):
            call = jax.ffi.ffi_call('count', result, has_side_effect=True)
            return call(start=n), call(start=n), call(start=n + 10)
        f = jax.jit(counters, static_argnums=0)
        for turn in range(3):
            self.assertEqual([int(y[0]) for y in f(7)], [7 + turn, 7 + turn, 17 + turn])
        self.assertEqual(LIBRARY.live_counters(), 3)
        with self.assertRaisesRegex(Exception, 'start is negative'):
            f(-1)
        f.clear_cache()
        jax.clear_caches()
        self.assertEqual(LIBRARY.live_counters(), 0)

    def test_memory_threads_and_numbers(self):
        x = jnp.arange(20)
        y = jax.jit(lambda x: jax.ffi.ffi_call('context', jax.ShapeDtypeStruct((1,), jnp.int64))(x))(
            x)
        self.assertEqual(int(y[0]), sum(i * i for i in range(20)))

    @unittest.skipUnless(hasattr(LIBRARY, 'additions'), 'of version 0.5 of the interface')
    def test_options_and_extensions(self):
        register('additions')
        call = jax.ffi.ffi_call('additions', jax.ShapeDtypeStruct((1,), jnp.int64))
        with self.assertRaisesRegex(Exception, 'NOT_FOUND.*absent not found in context'):
            jax.block_until_ready(jax.jit(call)())

    def test_asynchronous_handlers(self):
        x = jnp.arange(3, dtype=jnp.float32)

        def call(x, fail):
            return jax.ffi.ffi_call('later', like(x))(x, fail=fail)
        np.testing.assert_array_equal(jax.jit(call, static_argnums=1)(x, 0), [1, 2, 3])
        with self.assertRaisesRegex(Exception, 'DATA_LOSS.*later'):
            jax.block_until_ready(jax.jit(call, static_argnums=1)(x, 1))


class OlderFormsTest(unittest.TestCase):
    def test_older_forms(self):
        x = jnp.arange(3, dtype=jnp.float32)

        def call(name, version, result, **options):
            return jax.jit(lambda x: jax.ffi.ffi_call(
                name, result, custom_call_api_version=version, **options)(x))(x)
        np.testing.assert_array_equal(call('original', 1, like(x)), [0, 2, 4])
        y, z = call('with_status', 2, (like(x), like(x)))
        np.testing.assert_array_equal(y, [0, 3, 6])
        np.testing.assert_array_equal(z, [0, 4, 8])
        y = call('with_text', 3, like(x), legacy_backend_config='2.5')
        np.testing.assert_array_equal(y, [0, 2.5, 5])


class LapackTest(unittest.TestCase):
    """jaxlib's own handlers beside the library's functions."""

    @classmethod
    def setUpClass(cls):
        from jaxlib import lapack
        lapack._lapack.initialize()
        names = {'lapack_dsyevd_ffi', 'lapack_dgeqrf_ffi', 'lapack_dgetrf_ffi'}
        for platform, targets in lapack.registrations().items():
            for name, function, version in targets:
                if platform == 'cpu' and name in names and version == 1:
                    jax.ffi.register_ffi_target('jaxlib.' + name, function, platform='kiln')

    def test_eigenvalues(self):
        a = np.random.default_rng(0).normal(size=(3, 5, 5))
        a = a + a.transpose(0, 2, 1)
        matrix = (0, 2, 1)

        def call(a):
            return jax.ffi.ffi_call(
                'jaxlib.lapack_dsyevd_ffi',
                (like(a), jax.ShapeDtypeStruct(a.shape[:-1], a.dtype),
                 jax.ShapeDtypeStruct(a.shape[:-2], jnp.int32)),
                input_layouts=[matrix], output_layouts=[matrix, None, None],
                input_output_aliases={0: 0})(a, mode=np.uint8(ord('V')), uplo=np.uint8(ord('L')))
        v, w, info = jax.jit(call)(a)
        self.assertEqual(np.asarray(info).tolist(), [0, 0, 0])
        np.testing.assert_allclose(w, jnp.linalg.eigvalsh(a), atol=1e-12)
        np.testing.assert_allclose(a @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None],
                                   atol=1e-12)

    def test_factors(self):
        a = np.random.default_rng(1).normal(size=(4, 4))
        matrix = (1, 0)

        def call(a):
            return jax.ffi.ffi_call(
                'jaxlib.lapack_dgetrf_ffi',
                (like(a), jax.ShapeDtypeStruct((4,), jnp.int32),
                 jax.ShapeDtypeStruct((), jnp.int32)),
                input_layouts=[matrix], output_layouts=[matrix, None, None],
                input_output_aliases={0: 0})(a)
        lu, pivots, info = jax.jit(call)(a)
        ours = jax.jit(jax.lax.linalg.lu)(a)
        self.assertEqual(int(info), 0)
        np.testing.assert_allclose(lu, ours[0], atol=1e-12)
        np.testing.assert_array_equal(np.asarray(pivots) - 1, ours[1])


class HandlersOfJaxlibTest(unittest.TestCase):
    """Those that the lowering rules of cpu call, and the library does not have."""

    @unittest.skipUnless('perturb_singular' in inspect.signature(
        jax.lax.linalg.tridiagonal_solve).parameters, 'JAX has no perturb_singular')
    def test_tridiagonal_systems_without_rank(self):
        d = np.random.default_rng(2).normal(size=(3, 2, 6))
        b = np.random.default_rng(3).normal(size=(2, 6, 2))
        d[1, 0] = 0
        solve = functools.partial(jax.lax.linalg.tridiagonal_solve, perturb_singular=True)
        cpu = jax.jit(solve)(*jax.device_put((*d, b), jax.devices('cpu')[0]))
        np.testing.assert_allclose(jax.jit(solve)(*d, b), cpu, rtol=1e-10)

    def test_sparse_products(self):
        sparse = jax.ShapeDtypeStruct((2, 3), jnp.float64)
        data, starts, columns = np.array([1.0, 2, 3]), np.array([0, 2, 3]), np.array([0, 2, 1])
        dense = np.arange(9.0).reshape(3, 3)
        product = jax.jit(lambda *args: jax.ffi.ffi_call('cpu_csr_sparse_dense_ffi', sparse)(*args))
        np.testing.assert_array_equal(product(data, starts, columns, dense),
                                      np.array([[1, 0, 2], [0, 3, 0]]) @ dense)


if __name__ == '__main__':
    unittest.main()
