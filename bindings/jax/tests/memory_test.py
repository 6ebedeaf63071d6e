"""Kinds of memory, orders of elements and DLPack on Kiln. The environment is that of
plugin_test.py. Exit code 77 without JAX."""

import gc
import sys
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.dlpack
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import SingleDeviceSharding

DEVICE = jax.devices('kiln')[0]
CPU = jax.devices('cpu')[0]


def in_order(*major_to_minor):
    return Format(Layout(major_to_minor=major_to_minor), SingleDeviceSharding(DEVICE))


class MemoryKindTest(unittest.TestCase):
    def test_kinds(self):
        self.assertEqual(DEVICE.default_memory().kind, 'device')
        self.assertEqual({m.kind for m in DEVICE.addressable_memories()},
                         {'device', 'pinned_host', 'unpinned_host'})

    def test_arrays_move_between_kinds(self):
        x = jnp.arange(8.0)
        for kind in ('pinned_host', 'unpinned_host', 'device'):
            y = jax.device_put(x, SingleDeviceSharding(DEVICE, memory_kind=kind))
            self.assertEqual(y.sharding.memory_kind, kind)
            np.testing.assert_array_equal(y, np.arange(8))
        y = jax.device_put(x, jax.memory.Space.Host)
        self.assertEqual(y.sharding.memory_kind, 'pinned_host')
        np.testing.assert_array_equal(y, np.arange(8))

    def test_programs_with_kinds(self):
        host = SingleDeviceSharding(DEVICE, memory_kind='pinned_host')
        x = np.arange(8, dtype=np.float32)
        y = jax.jit(lambda a: a * 2, out_shardings=host)(x)
        self.assertEqual(y.sharding.memory_kind, 'pinned_host')
        np.testing.assert_array_equal(y, x * 2)
        z = jax.jit(lambda a: jax.device_put(a, jax.memory.Space.Device) + 1)(y)
        self.assertEqual(z.sharding.memory_kind, 'device')
        np.testing.assert_array_equal(z, x * 2 + 1)
        with self.assertRaisesRegex(Exception, 'no_such_kind'):
            jax.device_put(x, SingleDeviceSharding(DEVICE, memory_kind='no_such_kind'))


class LayoutTest(unittest.TestCase):
    def setUp(self):
        self.host = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def test_default(self):
        x = jnp.asarray(self.host)
        self.assertEqual(x.format.layout, jax.device_put(x, CPU).format.layout)

    def test_arrays(self):
        x = jax.device_put(self.host, in_order(2, 0, 1))
        self.assertEqual(x.format.layout.major_to_minor, (2, 0, 1))
        np.testing.assert_array_equal(np.asarray(x), self.host)
        y = jax.device_put(x, in_order(0, 1, 2))
        self.assertEqual(y.format.layout.major_to_minor, (0, 1, 2))
        np.testing.assert_array_equal(y, self.host)

    def test_arguments_and_results(self):
        f = jax.jit(lambda a, b: (a * 2 + b, a[0]), in_shardings=(in_order(1, 2, 0), None),
                    out_shardings=(in_order(2, 1, 0), None))
        x = jax.device_put(self.host, in_order(1, 2, 0))
        y, z = f(x, np.float32(1))
        self.assertEqual(y.format.layout.major_to_minor, (2, 1, 0))
        np.testing.assert_array_equal(y, self.host * 2 + 1)
        np.testing.assert_array_equal(z, self.host[0])
        compiled = f.lower(x, np.float32(1)).compile()
        self.assertEqual(compiled.input_formats[0][0].layout.major_to_minor, (1, 2, 0))
        self.assertEqual(compiled.output_formats[0].layout.major_to_minor, (2, 1, 0))

    def test_an_array_decides(self):
        x = jax.device_put(self.host, in_order(1, 2, 0))
        np.testing.assert_array_equal(jax.jit(lambda a: a + 1)(x), self.host + 1)
        np.testing.assert_array_equal(x + 1, self.host + 1)
        np.testing.assert_array_equal(x[1], self.host[1])

    def test_auto(self):
        auto = Format(Layout.AUTO)
        f = jax.jit(lambda a: a.T, in_shardings=auto, out_shardings=auto)
        compiled = f.lower(self.host).compile()
        formats, _ = compiled.input_formats
        x = jax.device_put(self.host, formats[0])
        np.testing.assert_array_equal(compiled(x), self.host.T)

    def test_donation(self):
        f = jax.jit(lambda a: a + 1, donate_argnums=0, in_shardings=in_order(2, 1, 0),
                    out_shardings=in_order(2, 1, 0))
        x = jax.block_until_ready(jax.device_put(self.host, in_order(2, 1, 0)))
        address = x.unsafe_buffer_pointer()
        y = jax.block_until_ready(f(x))
        self.assertTrue(x.is_deleted())
        self.assertEqual(y.unsafe_buffer_pointer(), address)
        np.testing.assert_array_equal(y, self.host + 1)

    def test_donation_without_a_named_result(self):
        f = jax.jit(lambda a, b: (a.reshape(64, 64) + b, a[:3]), donate_argnums=0)
        x = jnp.arange(4096.0) * 1
        y = np.float32(1)
        self.assertIn('jax.buffer_donor', f.lower(x, y).as_text())
        z, w = f(x, y)
        self.assertTrue(x.is_deleted())
        np.testing.assert_array_equal(z, np.arange(4096).reshape(64, 64) + 1)
        np.testing.assert_array_equal(w, [0, 1, 2])
        with self.assertRaisesRegex(Exception, 'deleted'):
            f(x, y)


class DlpackTest(unittest.TestCase):
    def test_out(self):
        for dtype in (np.float32, np.int8, np.uint16, np.complex64, np.bool_):
            x = jnp.arange(6).reshape(2, 3).astype(dtype)
            jax.block_until_ready(x)
            y = np.from_dlpack(x)
            self.assertEqual(y.ctypes.data, x.unsafe_buffer_pointer())
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_array_equal(y, np.asarray(x))
        np.testing.assert_array_equal(np.from_dlpack(jnp.zeros((0, 3))), np.zeros((0, 3)))
        self.assertEqual(np.from_dlpack(jnp.float32(3)), 3)

    def test_memory_is_held(self):
        x = jax.block_until_ready(jnp.arange(1 << 15) + 1)
        y = np.from_dlpack(x)
        x.delete()
        del x
        gc.collect()
        jax.block_until_ready([jnp.zeros(1 << 15) for _ in range(8)])
        np.testing.assert_array_equal(y, np.arange(1 << 15) + 1)

    def test_in(self):
        host = np.arange(1 << 15, dtype=np.float32).reshape(128, 256)
        x = jnp.from_dlpack(host)
        self.assertEqual(x.devices(), {DEVICE})
        np.testing.assert_array_equal(x + 1, host + 1)
        for other in (host.T, host.reshape(-1)[1:], host[:0]):
            np.testing.assert_array_equal(jnp.from_dlpack(other) + 1, other + 1)

    def test_in_by_copy(self):
        host = np.ones(1 << 15, np.float32)
        x = jnp.from_dlpack(host, copy=True)
        y = jnp.from_dlpack(host, copy=False)
        host[:] = 2
        self.assertEqual(float(x[5]), 1)
        self.assertEqual(float(y[5]), 2)

    def test_round_trip(self):
        for dtype in (jnp.bfloat16, jnp.float16, jnp.int32):
            x = jnp.arange(10).astype(dtype)
            y = jax.dlpack.from_dlpack(x)
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x)

    def test_cpu_arrays_are_as_before(self):
        cpu = jax.devices('cpu')[0]
        x = jax.block_until_ready(jax.device_put(np.arange(4), cpu))
        np.testing.assert_array_equal(np.from_dlpack(x), np.arange(4))
        self.assertEqual(jax.dlpack.from_dlpack(x).devices(), {cpu})
        self.assertEqual(jax.dlpack.from_dlpack(x, device=DEVICE).devices(), {DEVICE})


if __name__ == '__main__':
    unittest.main()
