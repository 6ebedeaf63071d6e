"""usage: worker.py PLATFORM THREADS FOLDER

One platform's side: reads a command a line, answers each with a line of JSON.

    prepare CASE   makes the case, calls it for the first time, writes its numbers into FOLDER
    sample SECONDS calls it again for so long
    drop           forgets it
"""

import gc
import os
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import turns  # noqa: E402  pylint: disable=wrong-import-position

PLATFORM, THREADS, FOLDER = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
ANSWERS = turns.answers()
# The processors are what XLA takes its number of threads from.
if PLATFORM in ('kiln', 'cpu'):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
os.environ['JAX_PLATFORMS'] = PLATFORM if PLATFORM == 'cpu' else PLATFORM + ',cpu'
if THREADS == 1:
    os.environ['XLA_FLAGS'] = ('--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1')

import jax  # noqa: E402  pylint: disable=wrong-import-position
import numpy as np  # noqa: E402  pylint: disable=wrong-import-position

import cases  # noqa: E402  pylint: disable=wrong-import-position

COMPILED = [0, 0.0]


def on_duration(event, seconds, **_):
    if event == '/jax/core/compile/backend_compile_duration':
        COMPILED[0] += 1
        COMPILED[1] += seconds


def memory(field):
    with open('/proc/self/status', encoding='ascii') as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))


class Run:
    """A case: `call` does it once and keeps the result."""

    def __init__(self, name):
        function, arguments, carried = cases.CASES[name]()
        self.carried = carried
        if carried is None:
            self.function = function
        else:
            self.function = jax.jit(function, donate_argnums=tuple(range(carried)))
        # Copies: a carried argument is donated, and made anew by each call.
        self.arguments = list(arguments) if carried is None else list(jax.tree.map(jax.device_put, arguments))
        jax.block_until_ready(self.arguments)
        self.result = None

    def call(self):
        self.result = self.function(*self.arguments)
        if self.carried:
            self.arguments[:self.carried] = self.result[:self.carried]

    def wait(self):
        jax.block_until_ready(self.result)


def prepare(name):
    with open('/proc/self/clear_refs', 'w', encoding='ascii') as refs:
        refs.write('5')  # the peak starts at what is there
    run = Run(name)
    COMPILED[:] = 0, 0.0
    start = time.perf_counter()
    run.call()
    run.wait()
    first = time.perf_counter() - start
    leaves = {str(i): np.asarray(x) for i, x in enumerate(jax.tree.leaves(run.result))
              if np.issubdtype(x.dtype, np.inexact)}
    np.savez(FOLDER / f'{PLATFORM}.npz', **leaves)
    return run, {'first': first, 'compile': COMPILED[1], 'programs': COMPILED[0]}


class Side:
    """The commands."""

    def __init__(self):
        self._run = None

    def prepare(self, name):
        self._run, answer = prepare(name)
        return answer

    def sample(self, seconds):
        seconds = turns.seconds_per_call(self._run, float(seconds))
        return {'seconds': seconds, 'peak': memory('VmHWM')}

    def compile(self, _):
        """Compiles again, where the case is one function of `jit`."""
        if not hasattr(self._run.function, 'lower'):
            return {}
        jax.clear_caches()
        gc.collect()
        COMPILED[:] = 0, 0.0
        self._run.function.lower(*self._run.arguments).compile()
        return {'compile': COMPILED[1]}

    def drop(self, _):
        self._run = None
        gc.collect()
        return {}


def main():
    if PLATFORM == 'kiln':
        jax.config.update('jax_pjrt_client_create_options', {'kiln_threads': THREADS})
    jax.monitoring.register_event_duration_secs_listener(on_duration)
    jax.block_until_ready(jax.numpy.zeros(1))  # the client is there
    side = Side()
    turns.serve(sys.stdin, ANSWERS, {'prepare': side.prepare, 'sample': side.sample,
                                     'compile': side.compile, 'drop': side.drop})


if __name__ == '__main__':
    main()
