"""Waiting for values of JAX on Kiln: interrupts, values that are read before they are ready, and
tokens. The environment is as in plugin_test.py."""

import os
import signal
import sys
import threading
import time
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.numpy as jnp
import numpy as np
from jax import lax


@jax.jit
def sines(count, x):
    """Takes about a millisecond for 500 counts of 1,000 elements."""
    return lax.fori_loop(0, count, lambda i, y: jnp.sin(y) + 1e-3, x)


class InterruptTest(unittest.TestCase):
    def interrupt(self, wait):
        """The time until the wait ends with a KeyboardInterrupt, sent after a fifth of a second."""
        x = jnp.ones(1000)
        expected = np.asarray(sines(10, x))
        count = 10000
        while True:  # a program of two seconds or more
            start = time.monotonic()
            sines(count, x).block_until_ready()
            if time.monotonic() - start > 2:
                break
            count *= 2
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        y = sines(count, x)
        start = time.monotonic()
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            wait(y)
            time.sleep(1)  # where the wait ended first
        took = time.monotonic() - start
        timer.join()
        # The next step works, and so does the value.
        np.testing.assert_array_equal(np.asarray(sines(10, x)), expected)
        self.assertTrue(np.isfinite(np.asarray(y)).all())
        return took

    def test_block_until_ready(self):
        self.assertLess(self.interrupt(lambda y: y.block_until_ready()), 1.5)

    def test_reading(self):
        self.assertLess(self.interrupt(np.asarray), 1.5)


class EarlyReadTest(unittest.TestCase):
    def test_large_values_are_read_in_place(self):
        x = jnp.arange(500_000.0)  # above the size that is copied
        y = sines(200, x)
        read = np.asarray(y)
        self.assertEqual(read.__array_interface__['data'][0], y.unsafe_buffer_pointer())
        y.delete()
        self.assertTrue(np.isfinite(read).all())

    def test_the_address_is_there_before_the_value(self):
        y = sines(100_000, jnp.ones(1000))
        address = y.unsafe_buffer_pointer()
        y.block_until_ready()
        self.assertEqual(address, y.unsafe_buffer_pointer())

    def test_reads_of_ready_values_do_not_wait_for_later_programs(self):
        x = jnp.ones(1000)
        ready = sines(10, x).block_until_ready()
        small = jnp.arange(1000).astype(jnp.int4).block_until_ready()
        pending = [sines(2_000_000, x) for _ in range(2)]
        start = time.monotonic()
        np.asarray(ready)
        np.asarray(small)
        jnp.copy(ready)
        took = time.monotonic() - start
        self.assertFalse(pending[1].is_ready())
        self.assertLess(took, 1)


class TokenTest(unittest.TestCase):
    def test_tokens_are_printed_and_passed_on(self):
        token = lax.create_token()
        str(token), repr(token)

        @jax.jit
        def step(token, x):
            return lax.after_all(token), x + 1

        x = jnp.zeros(3)
        for _ in range(5):
            token, x = step(token, x)
        str(token)
        jax.block_until_ready((token, x))
        np.testing.assert_array_equal(np.asarray(x), [5, 5, 5])


if __name__ == '__main__':
    unittest.main()
