"""Several devices of one processor. The environment is that of plugin_test.py. Exit code 77 without
JAX."""

import concurrent.futures
import sys
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

COUNT = 3
jax.config.update('jax_pjrt_client_create_options', {'kiln_device_count': COUNT})
DEVICES = jax.devices('kiln')


class DevicesTest(unittest.TestCase):
    def test_devices(self):
        self.assertEqual([d.id for d in DEVICES], list(range(COUNT)))
        self.assertEqual([str(d) for d in DEVICES], [f'kiln:{i}' for i in range(COUNT)])
        self.assertEqual(jax.local_device_count(), COUNT)
        self.assertEqual([d.local_hardware_id for d in DEVICES], list(range(COUNT)))
        memories = [m for d in DEVICES for m in d.addressable_memories()]
        self.assertEqual(len(set(map(str, memories))), 3 * COUNT)
        for device in DEVICES:
            self.assertGreaterEqual(device.memory_stats()['bytes_in_use'], 0)

    def test_arrays_are_put_and_moved(self):
        x = jnp.arange(10.0)
        self.assertEqual(x.devices(), {DEVICES[0]})
        for device in DEVICES:
            y = jax.device_put(x, device)
            self.assertEqual(y.devices(), {device})
            np.testing.assert_array_equal(y, np.arange(10))
        z = jax.device_put(jax.device_put(np.ones(3), DEVICES[2]), DEVICES[1])
        self.assertEqual(z.devices(), {DEVICES[1]})

    def test_computations_follow_their_operands(self):
        f = jax.jit(lambda a: jnp.sin(a) * 2)
        for device in DEVICES:
            x = jax.device_put(np.arange(5, dtype=np.float32), device)
            y = f(x)
            self.assertEqual(y.devices(), {device})
            np.testing.assert_allclose(y, np.sin(np.arange(5)) * 2, rtol=1e-6)
            self.assertEqual((x + 1).devices(), {device})
        with self.assertRaisesRegex(ValueError, 'incompatible devices'):
            f(jax.device_put(1.0, DEVICES[0])) + f(jax.device_put(1.0, DEVICES[1]))

    def test_default_device(self):
        with jax.default_device(DEVICES[2]):
            self.assertEqual(jnp.ones(3).devices(), {DEVICES[2]})
            self.assertEqual(jax.jit(lambda: jnp.zeros(2))().devices(), {DEVICES[2]})
        self.assertEqual(jnp.ones(3).devices(), {DEVICES[0]})

    def test_kinds_of_memory(self):
        y = jax.device_put(np.arange(4), SingleDeviceSharding(DEVICES[1], memory_kind='pinned_host'))
        self.assertEqual(y.devices(), {DEVICES[1]})
        self.assertEqual(y.sharding.memory_kind, 'pinned_host')

    def test_copies_of_values_that_are_not_ready(self):
        x = jnp.ones((300, 300))
        for i in range(30):
            x = jax.device_put(x @ x / 300, DEVICES[i % COUNT])
        np.testing.assert_allclose(x[0, 0], 1, rtol=1e-3)

    def test_donation_on_each_device(self):
        f = jax.jit(lambda a: a + 1, donate_argnums=0)
        for device in DEVICES:
            x = jax.block_until_ready(jax.device_put(jnp.ones(5000), device) * 1)
            address = x.unsafe_buffer_pointer()
            y = jax.block_until_ready(f(x))
            self.assertTrue(x.is_deleted())
            self.assertEqual(y.unsafe_buffer_pointer(), address)
            self.assertEqual(y.devices(), {device})

    def test_a_thread_for_each_device(self):
        def work(device):
            with jax.default_device(device):
                x = jnp.arange(1000.0)
                for _ in range(30):
                    x = jnp.sqrt(x * x)
                np.testing.assert_allclose(x, np.arange(1000), rtol=1e-4)
                assert x.devices() == {device}

        with concurrent.futures.ThreadPoolExecutor(len(DEVICES)) as threads:
            list(threads.map(work, DEVICES))

    def test_programs_for_several_devices_are_refused(self):
        mesh = jax.make_mesh((COUNT,), ('x',), devices=DEVICES)
        x = jax.device_put(np.arange(6.0), jax.NamedSharding(mesh, jax.P('x')))
        np.testing.assert_array_equal(x, np.arange(6))
        with self.assertRaisesRegex(Exception, 'several devices at once'):
            jax.jit(lambda a: a + 1)(x)


if __name__ == '__main__':
    unittest.main()
