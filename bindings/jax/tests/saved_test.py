"""JAX's executables as bytes on Kiln, its persistent compilation cache, topologies, and what the texts
of errors name. Environment and exit code as in plugin_test.py."""

import importlib.util
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.experimental.serialize_executable as serialized
import jax.experimental.topologies
import jax.numpy as jnp
import numpy as np
from jax._src import compilation_cache, monitoring

FOLDER = pathlib.Path(__file__).parent


def step(w, x):
    """Products, a loop, a function of LAPACK's, random numbers, a donated argument."""
    y = jax.lax.fori_loop(0, 3, lambda i, v: jnp.tanh(v @ w) + i, x)
    q = jnp.linalg.qr(y[:4, :4])[1]
    return y + jax.random.normal(jax.random.key(0), y.shape), q


ARGUMENTS = (np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8),
             np.linspace(0, 2, 48, dtype=np.float32).reshape(6, 8))


def run_elsewhere(code, *arguments, **environment):
    """What another Python prints, which has this one's environment."""
    result = subprocess.run([sys.executable, '-c', code, *arguments], capture_output=True, text=True,
                            cwd=FOLDER, env={**os.environ, **environment}, timeout=300, check=False)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout


class SerializedTest(unittest.TestCase):
    def setUp(self):
        self.compiled = jax.jit(step, donate_argnums=1).lower(*ARGUMENTS).compile()
        self.expected = list(map(np.asarray, self.compiled(*ARGUMENTS)))

    def test_in_this_process(self):
        loaded = serialized.deserialize_and_load(*serialized.serialize(self.compiled))
        x = jnp.array(ARGUMENTS[1])
        got = loaded(jnp.array(ARGUMENTS[0]), x)
        for a, b in zip(got, self.expected, strict=True):
            np.testing.assert_array_equal(a, b)
        self.assertTrue(x.is_deleted())
        self.assertEqual(loaded.memory_analysis().output_size_in_bytes,
                         self.compiled.memory_analysis().output_size_in_bytes)
        self.assertEqual(loaded.cost_analysis(), self.compiled.cost_analysis())
        self.assertEqual(loaded.as_text(), self.compiled.as_text())

    def test_in_another_process(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'executable')
            path.write_bytes(pickle.dumps((serialized.serialize(self.compiled), self.expected)))
            print(run_elsewhere('''
import pickle, sys
import jax, numpy as np
import jax.experimental.serialize_executable as serialized
from jax._src import monitoring
import saved_test
compiled = []
monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: compiled.append(event) if 'backend_compile' in event else None)
saved, expected = pickle.load(open(sys.argv[1], 'rb'))
loaded = serialized.deserialize_and_load(*saved)
for a, b in zip(loaded(*map(jax.device_put, saved_test.ARGUMENTS)), expected, strict=True):
    np.testing.assert_array_equal(a, b)
assert not compiled, compiled
''', str(path)))

    @unittest.skipUnless(importlib.util.find_spec('jax_plugins.kiln.callbacks'), 'no callbacks')
    def test_calls_of_python_are_refused(self):
        def call(x):
            return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

        compiled = jax.jit(call).lower(ARGUMENTS[0]).compile()
        with self.assertRaisesRegex(Exception, 'call Python'):
            serialized.serialize(compiled)

    def test_equal_programs_have_equal_bytes(self):
        again = jax.jit(step, donate_argnums=1).lower(*ARGUMENTS).compile()
        self.assertEqual(serialized.serialize(self.compiled)[0], serialized.serialize(again)[0])

    def test_damage_is_refused(self):
        client = jax.devices('kiln')[0].client
        data = bytearray(self.compiled.runtime_executable().serialize())
        # Before Kiln's bytes are jaxlib's own.
        start = data.index(b'KILNJAX1')
        for place in (start, start + 20, (start + len(data)) // 2, len(data) - 1):
            damaged = bytearray(data)
            damaged[place] ^= 1
            with self.assertRaisesRegex(Exception, 'serialised executable|damaged'):
                client.deserialize_executable(bytes(damaged), client.devices())
        with self.assertRaisesRegex(Exception, 'serialised executable'):
            client.deserialize_executable(bytes(data[:-1]), client.devices())

    def test_text_of_a_program(self):
        text = jax.jit(lambda x: jnp.sin(x) @ x).lower(ARGUMENTS[0]).compile().as_text()
        self.assertIn('sine(', text)
        self.assertIn('dot(', text)


COUNT = '''
import jax, jax.numpy as jnp
from jax._src import monitoring
import saved_test
counts = {}
def count(event, **_):
    counts[event] = counts.get(event, 0) + 1
monitoring.register_event_listener(count)
value = jax.jit(saved_test.step)(*map(jax.device_put, saved_test.ARGUMENTS))
print(counts.get('/jax/compilation_cache/cache_hits', 0),
      counts.get('/jax/compilation_cache/cache_misses', 0), float(jnp.sum(value[0])))
'''


class CacheTest(unittest.TestCase):
    def count(self, folder, **environment):
        out = run_elsewhere(COUNT, JAX_COMPILATION_CACHE_DIR=folder,
                            JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS='0',
                            JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES='-1', **environment)
        hits, misses, value = out.split()
        return int(hits), int(misses), float(value)

    def test_a_second_process_compiles_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            hits, misses, value = self.count(folder)
            self.assertEqual(hits, 0)
            self.assertGreaterEqual(misses, 1)
            files = sorted(os.listdir(folder))
            self.assertGreaterEqual(len(files), misses)
            self.assertEqual(self.count(folder), (misses, 0, value))
            # A damaged entry is compiled again.
            for name in files:
                path = pathlib.Path(folder, name)
                if name.endswith('-cache'):
                    path.write_bytes(path.read_bytes()[:100])
            self.assertEqual(self.count(folder, PYTHONWARNINGS='ignore')[2], value)

    def test_entries_of_cpu_are_others(self):
        with tempfile.TemporaryDirectory() as folder:
            hits, misses, _ = self.count(folder)
            again, misses_of_cpu, _ = self.count(folder, JAX_PLATFORMS='cpu')
            self.assertEqual((hits, again), (0, 0))
            self.assertGreater(misses_of_cpu, 0)
            self.assertGreater(misses, 0)

    def test_private_names_of_jax(self):
        # cache.install() replaces it.
        self.assertTrue(compilation_cache.is_cache_used.knows_kiln)
        self.assertEqual(list(inspect.signature(compilation_cache.is_cache_used).parameters),
                         ['backend'])
        self.assertTrue(callable(monitoring.register_event_listener))

    def test_a_build_is_in_the_key(self):
        version = jax.devices('kiln')[0].client.platform_version
        self.assertRegex(version, r'Kiln 0\.\d+\.\d+, build [0-9a-f]{16,}, cpu ')


LOGGED = '''
import os, sys
os.dup2(1, 2)
import jax, jax.numpy as jnp
import saved_test
if len(sys.argv) > 1:
    jax.config.update('jax_pjrt_client_create_options', {'kiln_cache_folder': sys.argv[1]})
value = jax.jit(saved_test.step)(*map(jax.device_put, saved_test.ARGUMENTS))
print('total', float(jnp.sum(value[0])))
'''


class DiskCacheTest(unittest.TestCase):
    """Kiln's own cache, without JAX's."""

    def log(self, *arguments, **environment):
        return run_elsewhere(LOGGED, *arguments, KILN_FLAGS='--log_level=info', **environment)

    def test_a_second_process_compiles_nothing(self):
        for by_option in (False, True):
            with self.subTest(by_option=by_option), tempfile.TemporaryDirectory() as folder:
                given = ([folder], {}) if by_option else ([], {'KILN_CACHE': folder})
                first = self.log(*given[0], **given[1])
                self.assertIn("compiled 'jit_step'", first)
                entries = sorted(os.listdir(folder))
                self.assertGreater(len(entries), 1)
                second = self.log(*given[0], **given[1])
                self.assertIn("loaded from the cache 'jit_step'", second)
                self.assertNotIn('compiled', second)
                self.assertEqual(first.split('total')[1], second.split('total')[1])
                self.assertEqual(sorted(os.listdir(folder)), entries)


class TopologyTest(unittest.TestCase):
    def test_programs_for_this_machine(self):
        topology = jax.experimental.topologies.get_topology_desc(platform='kiln')
        self.assertEqual([d.device_kind for d in topology.devices], ['Kiln CPU'])
        self.assertEqual({m.kind for m in topology.devices[0].addressable_memories()},
                         {m.kind for m in jax.devices('kiln')[0].addressable_memories()})
        self.assertEqual(topology.devices[0].default_memory().kind, 'device')
        sharding = jax.sharding.SingleDeviceSharding(topology.devices[0])
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in ARGUMENTS]
        compiled = jax.jit(step).lower(*shapes).compile()
        self.assertEqual(compiled.memory_analysis().argument_size_in_bytes, 256 + 192)
        loaded = serialized.deserialize_and_load(*serialized.serialize(compiled), backend='kiln')
        got = loaded(*map(jnp.array, ARGUMENTS))
        np.testing.assert_array_equal(got[0], jax.jit(step)(*ARGUMENTS)[0])

    def test_other_machines_are_refused(self):
        with self.assertRaisesRegex(Exception, 'topology not implemented'):
            jax.experimental.topologies.get_topology_desc('v5e:2x2', platform='kiln')

    def test_of_the_devices(self):
        topology = jax.experimental.topologies.get_attached_topology('kiln')
        self.assertEqual(len(topology.devices), len(jax.devices('kiln')))


class TextTest(unittest.TestCase):
    def test_failures_name_the_operation_and_its_place(self):
        def line():
            return inspect.currentframe().f_back.f_lineno

        with self.assertRaises(Exception) as raised:
            at = line() + 1
            call = lambda x: jax.ffi.ffi_call('no_such_target', jax.ShapeDtypeStruct(
                (2,), jnp.float32))(x)
            jax.jit(call)(jnp.ones(2))
        text = str(raised.exception)
        self.assertRegex(text, r"custom-call 'jit\(.*/ffi_call at .*saved_test.py:(\d+)'")
        self.assertIn(f'saved_test.py:{at}', text)

    def test_options(self):
        lowered = jax.jit(lambda x: jnp.sin(x) + 1).lower(jnp.ones(2))

        def compiled(**options):
            return lowered.compile(compiler_options=options)

        for name, value, problem in (('xla_no', 1.5, None), ('no_xla', 1, 'No such compile option'),
                                     ('xla_backend_optimization_level', 'x', 'valid int32 value'),
                                     ('xla_llvm_disable_expensive_passes', 'x', 'valid bool value'),
                                     ('xla_dump_to', True, 'valid string value')):
            if problem is None:
                compiled(**{name: value})
                continue
            with self.assertRaisesRegex(Exception, problem):
                compiled(**{name: value})
        for options in ({'xla_backend_optimization_level': 1},
                        {'xla_llvm_disable_expensive_passes': True}, {'optimization_level': 9}):
            np.testing.assert_allclose(compiled(**options)(jnp.ones(2)), np.sin(np.ones(2)) + 1,
                                       rtol=1e-6)
        with tempfile.TemporaryDirectory() as folder:
            compiled(xla_dump_to=folder)
            self.assertTrue(any('before_optimizations' in name for name in os.listdir(folder)))


if __name__ == '__main__':
    unittest.main()
