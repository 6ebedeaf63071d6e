"""The platform kiln_gpu, on an emulated GPU. Exit code 77 without JAX."""

import os
import sys
import unittest

os.environ['JAX_PLATFORMS'] = 'kiln_gpu,kiln,cpu'
os.environ['KILN_EMULATE_GPU'] = '1'
try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

GPU = jax.devices('kiln_gpu')[0]


class GpuTest(unittest.TestCase):
    def test_the_device(self):
        self.assertEqual(jax.default_backend(), 'kiln_gpu')
        self.assertEqual(GPU.platform, 'kiln_gpu')
        self.assertEqual(GPU.device_kind, 'Kiln GPU')
        self.assertNotEqual(jax.devices('kiln')[0], GPU)
        x = jax.block_until_ready(jnp.zeros(1 << 18))
        self.assertGreaterEqual(GPU.memory_stats()['bytes_in_use'], 1 << 20)
        del x

    def test_programs(self):
        x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
        f = jax.jit(jax.grad(lambda a: jnp.sum(jnp.tanh(a @ a.T))))
        y = f(x)
        self.assertEqual(y.devices(), {GPU})
        expected = f(jax.device_put(x, jax.devices('cpu')[0]))
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        spd = x.T @ x + np.eye(4, dtype=np.float32)
        np.testing.assert_allclose(jnp.linalg.cholesky(spd), np.linalg.cholesky(spd), atol=1e-5)

    def test_transfers(self):
        for host in (np.arange(100000, dtype=np.float32), np.arange(6).reshape(2, 3).T):
            x = jax.device_put(host)
            np.testing.assert_array_equal(x, host)
            y = jax.device_put(x, jax.devices('kiln')[0])
            np.testing.assert_array_equal(jax.device_put(y, GPU), host)

    def test_donation(self):
        x = jnp.ones(5000) * 2
        y = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
        self.assertTrue(x.is_deleted())
        np.testing.assert_array_equal(y, np.full(5000, 3))

    def test_host_memory(self):
        host = SingleDeviceSharding(GPU, memory_kind='pinned_host')
        x = jax.device_put(np.arange(8.0), host)
        self.assertEqual(x.sharding.memory_kind, 'pinned_host')
        np.testing.assert_array_equal(x, np.arange(8))
        y = jax.jit(lambda a: jax.device_put(a, jax.memory.Space.Device) + 1)(x)
        np.testing.assert_array_equal(y, np.arange(8) + 1)
        z = jax.jit(lambda a: a * 2, out_shardings=host)(y)
        self.assertEqual(z.sharding.memory_kind, 'pinned_host')
        np.testing.assert_array_equal(z, np.arange(1, 9) * 2)


if __name__ == '__main__':
    unittest.main()
