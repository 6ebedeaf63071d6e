"""Traces of jax.profiler on Kiln. The environment is as in plugin_test.py."""

import glob
import os
import sys
import tempfile
import time
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.numpy as jnp


@jax.jit
def tanh_sum(x):
    return jnp.sum(jnp.tanh(x), axis=1)


def recorded(folder):
    """{name of a plane: its lines}, of the newest trace in a folder."""
    paths = glob.glob(os.path.join(folder, '**', '*.xplane.pb'), recursive=True)
    with open(max(paths, key=os.path.getmtime), 'rb') as file:
        profile = jax.profiler.ProfileData.from_serialized_xspace(file.read())
    return {plane.name: [list(line.events) for line in plane.lines] for plane in profile.planes}


class ProfilerTest(unittest.TestCase):
    def test_trace(self):
        x = jnp.ones((300, 1000))
        tanh_sum(x).block_until_ready()
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic_ns()
            with jax.profiler.trace(folder):
                for _ in range(3):
                    tanh_sum(x).block_until_ready()
            duration = time.monotonic_ns() - start  # JAX's times are those since the start
            planes = recorded(folder)
        events = [e for line in planes['/device:CUSTOM:Kiln CPU:0'] for e in line]
        kernels = [e for e in events if dict(e.stats)['category'] == 'kernel']
        self.assertEqual(len(kernels), 3)
        for event in kernels:
            self.assertTrue(0 <= event.start_ns <= event.end_ns <= duration)
            self.assertGreaterEqual(dict(event.stats)['bytes'], x.nbytes)

    def test_a_second_trace_and_no_work(self):
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                pass
            self.assertNotIn('/device:CUSTOM:Kiln CPU:0', recorded(folder))
            with jax.profiler.trace(folder):
                tanh_sum(jnp.ones((2, 2))).block_until_ready()
            self.assertIn('/device:CUSTOM:Kiln CPU:0', recorded(folder))


if __name__ == '__main__':
    unittest.main()
