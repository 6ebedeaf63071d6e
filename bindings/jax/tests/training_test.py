"""Long training loops with donation, and threads, on Kiln. Needs JAX_PLATFORMS=kiln,cpu, the package on
PYTHONPATH, and KILN_PJRT_LIBRARY. Exit code 77 without JAX. KILN_JAX_STEPS is the number of steps."""

import concurrent.futures
import gc
import os
import signal
import sys
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.numpy as jnp
import numpy as np

STEPS = int(os.environ.get('KILN_JAX_STEPS', 2000))
SIZES = (64, 128, 64, 10)


def parameters():
    random = np.random.default_rng(0)
    return [(random.normal(size=(m, n)).astype(np.float32) * m ** -0.5, np.zeros(n, np.float32))
            for m, n in zip(SIZES, SIZES[1:])]


def batch(seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(32, SIZES[0])).astype(np.float32)
    return x, np.argmax(x[:, :SIZES[-1]], axis=1)


def loss(layers, x, y):
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    logits = jax.nn.log_softmax(x @ layers[-1][0] + layers[-1][1])
    return -jnp.mean(jnp.take_along_axis(logits, y[:, None], axis=1))


def step(state, x, y):
    """Momentum, whose state is donated with the parameters."""
    layers, speeds = state
    value, gradient = jax.value_and_grad(loss)(layers, x, y)
    speeds = jax.tree.map(lambda v, g: 0.9 * v + g, speeds, gradient)
    return (jax.tree.map(lambda p, v: p - 0.02 * v, layers, speeds), speeds), value


def resident_pages():
    gc.collect()
    with open('/proc/self/statm', encoding='ascii') as statm:
        return int(statm.read().split()[1])


def start():
    layers = parameters()
    return jax.device_put((layers, jax.tree.map(np.zeros_like, layers)))


class TrainingTest(unittest.TestCase):
    def test_memory_does_not_grow(self):
        device = jax.devices('kiln')[0]
        train = jax.jit(step, donate_argnums=0)
        batches = [batch(seed) for seed in range(8)]
        state, pages, used = start(), [], []
        for number in range(STEPS):
            state, value = train(state, *batches[number % 8])
            if number % 8 == 0:
                value.block_until_ready()  # steps that wait have memory, too
            if number % (STEPS // 10) == 0:
                value = float(value)
                used.append(device.memory_stats()['bytes_in_use'])
                pages.append(resident_pages())
        self.assertLess(float(value), 0.1)
        self.assertEqual(len(set(used[1:])), 1, used)
        self.assertLessEqual(pages[-1], pages[4], pages)

    def test_interrupt_between_steps(self):
        train, data = jax.jit(step, donate_argnums=0), batch(0)
        state, _ = train(start(), *data)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        with self.assertRaises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            while True:
                state, value = train(state, *data)
                value.block_until_ready()
        if any(x.is_deleted() for x in jax.tree.leaves(state)):
            state = start()  # the interrupt came between the donation and the assignment
        _, value = train(state, *data)
        self.assertTrue(np.isfinite(float(value)))

    def test_threads_train_at_once(self):
        """Each thread trains its own model by the same program, and one of its own beside it."""
        train = jax.jit(step, donate_argnums=0)
        expected = start()
        for number in range(50):
            expected, _ = train(expected, *batch(number))

        def work(index):
            own = jax.jit(lambda a: jnp.sum(a * index))
            state = start()
            for number in range(50):
                state, value = train(state, *batch(number))
                self.assertEqual(float(own(jnp.ones(3))), 3 * index)
            for got, wanted in zip(jax.tree.leaves(state), jax.tree.leaves(expected)):
                np.testing.assert_array_equal(got, wanted)

        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(8)))


if __name__ == '__main__':
    unittest.main()
