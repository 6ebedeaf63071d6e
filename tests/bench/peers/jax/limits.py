"""usage: limits.py [--library FILE] [--json FILE] [--rounds N] [--threads N] [MODEL...]

The memory of the models at full size, of their gradients and of steps of gradient descent in the
memory of the parameters: the temporaries of XLA's CPU and of Kiln, and those of Kiln under limits of
half of XLA's and of half of its own, with the time of a call in times of one without a limit, both
called in turn.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import turns  # noqa: E402  pylint: disable=wrong-import-position

MEGABYTE = 1e6
RATE = 1e-3


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('--library', help="the plugin's")
    parser.add_argument('--json', help='a file that lines of JSON are appended to')
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('models', nargs='*')
    return parser.parse_args()


OPTIONS = arguments()
if OPTIONS.library:
    os.environ['KILN_PJRT_LIBRARY'] = OPTIONS.library
os.environ['JAX_PLATFORMS'] = 'kiln,cpu'

import jax  # noqa: E402  pylint: disable=wrong-import-position

import models  # noqa: E402  pylint: disable=wrong-import-position


def programs(entry):
    """Functions of a model, with the number of arguments that they are donated and return first."""
    gradient, given, _ = models.gradient_of(entry)

    def step(params, inputs):
        return jax.tree.map(lambda p, g: p - RATE * g, params, gradient(params, inputs))

    return {'gradient': (gradient, given, 0), 'step': (step, given, 1)}


def compiled(program, platform, limit=0):
    """A program for a platform, or None where it cannot keep within the limit."""
    function, given, carried = program
    with jax.default_device(jax.devices(platform)[0]):
        lowered = jax.jit(function, donate_argnums=tuple(range(carried))).lower(*given)
        try:
            return lowered.compile(
                compiler_options={'kiln_memory_limit_bytes': limit} if limit else None)
        except jax.errors.JaxRuntimeError as error:
            if 'RESOURCE_EXHAUSTED' not in str(error):
                raise
            return None


def temporaries(program):
    return program.memory_analysis().temp_size_in_bytes


class Run:
    """Calls of a program one after another, each with the donated results of the last one."""

    def __init__(self, program, given, carried):
        self.program, self.carried = program, carried
        self.arguments = [jax.tree.map(jax.device_put, x) for x in given]
        self.seconds = []

    def call(self):
        start = time.perf_counter()
        result = self.program(*self.arguments)
        jax.block_until_ready(result)
        self.seconds.append(time.perf_counter() - start)
        if self.carried:
            self.arguments[0] = result


def time_of_limit(usual, limited, program, rounds):
    """The time of a call of one in times of the other."""
    runs = [Run(p, program[1], program[2]) for p in (usual, limited)]
    for run in runs:
        run.call()
        run.seconds.clear()
    for number in range(rounds):
        for run in runs if number % 2 else reversed(runs):
            run.call()
    return statistics.median(b / a for a, b in zip(*(run.seconds for run in runs)))


def under_limit(usual, program, limit, rounds):
    """What a program needs under a limit, and its time; nothing where it does not fit."""
    limited = compiled(program, 'kiln', limit)
    return limited and {'limit': limit, 'temporaries': temporaries(limited),
                        'time': time_of_limit(usual, limited, program, rounds)}


def measure(name, kind, program, rounds):
    usual = compiled(program, 'kiln')
    xla, own = temporaries(compiled(program, 'cpu')), temporaries(usual)
    return {'name': name, 'kind': kind, 'xla': xla, 'kiln': own,
            'half_of_xla': under_limit(usual, program, xla // 2, rounds),
            'half_of_own': under_limit(usual, program, own // 2, rounds)}


def row(record):
    cells = [f'{record["name"] + ", " + record["kind"]:24}']
    cells += [f'{record[key] / MEGABYTE:10.3g}' for key in ('xla', 'kiln')]
    for key in 'half_of_xla', 'half_of_own':
        found = record[key]
        cells.append(f'{found["temporaries"] / MEGABYTE:10.3g}{found["time"]:6.2f}' if found
                     else f'{"no":>10}{"":6}')
    return ''.join(cells)


def main():
    jax.config.update('jax_pjrt_client_create_options', {'kiln_threads': OPTIONS.threads})
    print(f'{OPTIONS.threads} threads; MB of temporaries, and under limits with the time')
    print(f'{"":24}{"XLA":>10}{"Kiln":>10}{"half of XLA":>16}{"half of own":>16}', flush=True)
    for name, entry in models.FULL.items():
        if OPTIONS.models and not any(m in name for m in OPTIONS.models):
            continue
        for kind, program in programs(entry).items():
            record = measure(name, kind, program, OPTIONS.rounds)
            print(row(record), flush=True)
            turns.keep(record, OPTIONS)
    return 0


if __name__ == '__main__':
    sys.exit(main())
