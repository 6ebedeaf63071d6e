"""usage: compare.py [--library FILE] [--json FILE] [--rounds N] [--threads N] [--gpu] [CASE...]

JAX programs on Kiln and on XLA's CPU, or with --gpu on the GPU by both: a process for each platform,
both called in turn. Compares the numbers, and prints milliseconds per call, of the first call and of
compilation, and the peak memory of the host. CASE is a part of a name. FILE is the plugin's library;
its package is on PYTHONPATH.
"""

import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import turns  # noqa: E402  pylint: disable=wrong-import-position

ON_CPU, ON_GPU = ('kiln', 'cpu'), ('kiln_gpu', 'cuda')
TOLERANCE = 1e-4
COMPILATIONS = 3
# What two runs of a chain of draws can differ by.
LOOSER = {'NumPyro NUTS': 0.1, 'NumPyro SVI': 1e-3, 'Diffrax solve': 1e-3}


def names():
    listing = subprocess.run([sys.executable, '-c', 'import cases; print(*cases.CASES, sep="\\n")'],
                             cwd=HERE, check=True, capture_output=True, text=True,
                             env={'JAX_PLATFORMS': 'cpu'})
    return listing.stdout.splitlines()


def worker_of(platform, threads, folder, library):
    """A platform's process."""
    environment = os.environ | ({'KILN_PJRT_LIBRARY': library} if library else {})
    return turns.Worker(platform, [sys.executable, '-W', 'ignore', HERE / 'worker.py', platform,
                                   str(threads), folder], environment)


def difference(folder, platforms):
    """The largest difference of two platforms' numbers, of the largest number beside them. Arrays that
    are small beside all others, such as gradients that are zero but for rounding, count less."""
    ours, theirs = (np.load(folder / f'{p}.npz') for p in platforms)
    if sorted(ours) != sorted(theirs):
        return math.inf
    largest = [float(np.abs(theirs[key]).max(initial=0)) for key in theirs]
    floor = 1e-2 * max(largest, default=0) or 1.0
    return max((float(np.abs(ours[key] - theirs[key]).max(initial=0)) / max(size, floor)
                for key, size in zip(theirs, largest)), default=0.0)


def measure(workers, name, folder, rounds, seconds):
    """The record of a case: for each platform its milliseconds, and the difference of their numbers."""
    record = {'name': name}
    for worker in workers:
        answer = worker.ask('prepare ' + name)
        record[worker.name] = answer
        if 'error' in answer:
            return record
    record['difference'] = difference(folder, [worker.name for worker in workers])
    samples = {worker.name: [] for worker in workers}
    for number in range(rounds):
        for worker in workers if number % 2 else reversed(workers):
            samples[worker.name].append(worker.ask(f'sample {seconds}'))
    again = {worker.name: [] for worker in workers}
    for _ in range(COMPILATIONS):
        for worker in workers:
            first = record[worker.name]['compile']
            again[worker.name].append(worker.ask('compile').get('compile', first))
    for worker in workers:
        worker.ask('drop')
        record[worker.name] |= {
            'call': statistics.median(sample['seconds'] for sample in samples[worker.name]),
            'compile': statistics.median(again[worker.name]),
            'peak': samples[worker.name][-1]['peak']}
    return record


def row(record, platforms):
    for platform in platforms:
        if 'error' in record.get(platform, {}):
            return f'{record["name"]:32} {platform}: {record[platform]["error"]}'
    ours, theirs = (record[p] for p in platforms)
    cells = [f'{record["name"]:32}']
    for key in ('call', 'compile', 'first'):
        cells.append(f'{ours[key] * 1e3:9.4g}{theirs[key] * 1e3:9.4g}{theirs[key] / ours[key]:7.2f}')
    cells.append(f'{ours["peak"]:7.0f}{theirs["peak"]:7.0f}  {record["difference"]:.1e}')
    return ''.join(cells)


def agrees(record):
    return record.get('difference', math.inf) <= LOOSER.get(record['name'], TOLERANCE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--library', help="the plugin's")
    parser.add_argument('--gpu', action='store_true', help='on the GPU, by Kiln and by XLA')
    turns.add_arguments(parser, rounds=5)
    options = parser.parse_args()
    platforms = ON_GPU if options.gpu else ON_CPU
    chosen = turns.chosen(names(), options)
    print(f'{options.threads} threads; ms of Kiln, of XLA, and how many times as fast Kiln is')
    print(f'{"":32}{"call":>25}{"compile":>25}{"first call":>25}{"peak MiB":>14}  difference')
    with tempfile.TemporaryDirectory() as folder:
        workers = [worker_of(p, options.threads, folder, options.library) for p in platforms]
        records = (measure(workers, name, pathlib.Path(folder), options.rounds, options.seconds)
                   for name in chosen)
        failed = turns.report(records, lambda record: row(record, platforms), agrees, options)
        for worker in workers:
            worker.end()
    if failed:
        print('Numbers differ, or there are none:', ', '.join(failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
