"""usage: compare.py --kiln PYTHON [--torch PYTHON] [--jax PYTHON] [--mkl FILE] [--json FILE]
                  [--rounds N] [--seconds S] [--threads N] [CASE...]

Steps of trainings on Kiln, PyTorch (eager and compiled by Inductor) and XLA, called in turn, a process
for each. Compares the losses of the first steps, and prints milliseconds of a step, how many times as
fast Kiln is as the best of the others, and how near the step is to its products: the share of its time
that they would take at the rate of a large product. CASE is a part of a name.

On processors that are not Intel's, MKL, by which PyTorch multiplies, leaves AVX-512 unused. With FILE,
a library that answers for the processor, it uses AVX-512: the columns with a plus.
"""

import argparse
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import turns  # noqa: E402  pylint: disable=wrong-import-position

import cases  # noqa: E402  pylint: disable=wrong-import-position

# Of the losses of the first steps, of the largest of them. Optax's Adam divides by 1 - 0.999^n in f32,
# which has four digits at first.
TOLERANCE = 1e-3
LARGE = 1536  # the side of matrices of a large product


def is_intel():
    with open('/proc/cpuinfo', encoding='ascii') as told:
        return 'GenuineIntel' in told.read()


def workers_of(options):
    environment = os.environ | {'OMP_NUM_THREADS': str(options.threads), 'JAX_PLATFORMS': 'cpu'}
    if options.threads == 1:
        environment['XLA_FLAGS'] = ('--xla_cpu_multi_thread_eigen=false '
                                    'intra_op_parallelism_threads=1')
    mkl = environment | {'LD_PRELOAD': options.mkl}
    ways = [('kiln', options.kiln, environment), ('xla', options.jax, environment)]
    for name in 'torch', 'inductor':
        ways.append((name, options.torch, environment))
        if os.path.exists(options.mkl) and not is_intel():
            ways.append((name + '+', options.torch, mkl))
    return [turns.Worker(name, [python, '-W', 'ignore', HERE / 'worker.py', name.rstrip('+'),
                                str(options.threads)], environment)
            for name, python, environment in ways if python]


def difference(losses, others):
    return max(abs(a - b) for a, b in zip(losses, others)) / max(map(abs, losses))


def measure(workers, name, rounds, seconds):
    """The record of a case: each library's seconds of a step, and what its losses differ by."""
    record = {'name': name, 'step': {}, 'first': {}, 'difference': {}}
    losses = None
    for worker in workers:
        answer = worker.ask('prepare ' + name)
        if 'error' in answer:
            raise SystemExit(f'{name}: {worker.name}: {answer["error"]}')
        losses = losses or answer['losses']
        record['first'][worker.name] = answer['first']
        record['difference'][worker.name] = difference(losses, answer['losses'])
    samples, rates = {worker.name: [] for worker in workers}, []
    for number in range(rounds):
        # Who goes first changes from round to round.
        for at in range(len(workers)):
            worker = workers[(at + number) % len(workers)]
            samples[worker.name].append(worker.ask(f'sample {seconds}')['seconds'])
        rates.append(workers[0].ask(f'rate {LARGE}')['rate'])
    for worker in workers:
        worker.ask('drop')
    record['step'] = {key: statistics.median(values) for key, values in samples.items()}
    record['products'] = (2 * cases.CASES[name].multiplications / statistics.median(rates) /
                          record['step']['kiln'])
    own = record['step']['kiln']
    record['times_as_fast'] = min((value for key, value in record['step'].items()
                                   if key != 'kiln' and '+' not in key), default=own) / own
    record['times_as_fast_as_all'] = min((value for key, value in record['step'].items()
                                          if key != 'kiln'), default=own) / own
    return record


def row(record, names):
    cells = [f'{record["name"]:28}'] + [f'{record["step"][name] * 1e3:10.4g}' for name in names]
    cells.append(f'{record["times_as_fast"]:10.2f}{record["times_as_fast_as_all"]:10.2f}'
                 f'{record["products"]:10.2f}  {max(record["difference"].values()):.1e}')
    return ''.join(cells)


def agrees(record):
    return max(record['difference'].values()) <= TOLERANCE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kiln', required=True, help='a Python with NumPy; Kiln is on PYTHONPATH')
    parser.add_argument('--torch', help='one with PyTorch')
    parser.add_argument('--jax', help='one with JAX and Optax')
    parser.add_argument('--mkl', default='', help="a library that MKL asks for the processor's maker")
    turns.add_arguments(parser, rounds=9)
    options = parser.parse_args()
    workers = workers_of(options)
    names = [worker.name for worker in workers]
    print(f'{options.threads} threads; ms of a step')
    print(f'{"":28}' + ''.join(f'{name:>10}' for name in names) +
          '     times    with +  products  losses', flush=True)
    records = (measure(workers, name, options.rounds, options.seconds)
               for name in turns.chosen(cases.CASES, options))
    failed = turns.report(records, lambda record: row(record, names), agrees, options)
    for worker in workers:
        worker.end()
    if failed:
        print('Losses differ:', ', '.join(failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
