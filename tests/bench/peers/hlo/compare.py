"""usage: compare.py --run FILE [--json FILE] [--rounds N] [--threads N] [CASE...]

The programs in HLO text of $KILN_WORKLOADS_DIR/hlo on Kiln and on XLA's CPU: a process for each, both
called in turn, on the same made-up arguments. Compares the results, and prints milliseconds of a run
and of compilation, and how many times as fast Kiln is. CASE is a part of a name; FILE is kiln-run, which
makes the arguments.
"""

import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import kiln
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import turns  # noqa: E402  pylint: disable=wrong-import-position

SIDES = ('kiln', 'xla')
# Of the largest magnitude of a result. XLA keeps more bits of bf16 than the program says.
TOLERANCE = 2e-2
COMPILES = 3
# What Kiln is held to: times as fast, as geometric means, and the least of all programs.
LEAST_MEAN, LEAST_COMPILE, LEAST = 3, 6, 0.9


def prepare(run, path, folder):
    """Puts a program and its arguments into a folder."""
    module, text = folder / 'module.hlo', path.read_text(encoding='utf-8')
    if '{...}' in text:
        # Both get the elements that Kiln makes up.
        with kiln.Context(threads=1, gpu='OFF') as context:
            text = context.graph_from_hlo_text(text).to_hlo_text()
    module.write_text(text, encoding='utf-8')
    subprocess.run([run, '--reference=none', f'--write-inputs={folder}', str(module)], check=True,
                   capture_output=True)


def difference(folder, results):
    """The largest difference of a result, of its largest magnitude."""
    largest = 0.0
    for k in range(results):
        ours, theirs = (np.load(folder / f'{side}{k}.npy') for side in SIDES)
        if ours.shape != theirs.shape:
            return math.inf
        same = np.isnan(ours) & np.isnan(theirs) | (ours == theirs)
        error = np.abs(np.where(same, 0, ours.astype(np.float64) - theirs)).max(initial=0)
        size = np.abs(theirs[np.isfinite(theirs)].astype(np.float64)).max(initial=0)
        largest = max(largest, math.inf if np.isnan(error) else error / (size or 1))
    return largest


def measure(workers, path, options):
    """The record of a program."""
    record = {'name': path.stem}
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        try:
            prepare(options.run, path, folder)
        except subprocess.CalledProcessError as error:
            return record | {'error': f'kiln-run: {error.stdout.decode()[-200:]}'}
        for worker in workers:
            answer = worker.ask(f'prepare {folder}')
            if 'error' in answer:
                return record | {'error': f'{worker.name}: {answer["error"]}'}
        record['difference'] = difference(folder, answer['results'])
    record |= {key: {w.name: [] for w in workers} for key in ('compile', 'run')}
    for number in range(max(options.rounds, COMPILES)):
        for worker in workers if number % 2 else reversed(workers):
            if number < COMPILES:
                record['compile'][worker.name].append(worker.ask('compile')['seconds'])
            if number < options.rounds:
                record['run'][worker.name].append(worker.ask(f'sample {options.seconds}')['seconds'])
    for key in ('compile', 'run'):
        for worker in workers:
            record[key][worker.name] = statistics.median(record[key][worker.name])
        record[f'{key}_times'] = record[key]['xla'] / record[key]['kiln']
    for worker in workers:
        worker.ask('drop')
    return record


def row(record):
    cells = [f'{record["name"]:46}']
    if 'error' in record:
        return cells[0] + record['error']
    for key in ('run', 'compile'):
        cells += [f'{record[key][side] * 1e3:9.4g}' for side in SIDES]
        cells.append(f'{record[f"{key}_times"]:7.2f}')
    return ''.join(cells) + f'  {record["difference"]:.1e}'


def agrees(record):
    return record.get('difference', math.inf) <= TOLERANCE


def summary(records):
    """Lines about all programs."""
    times = {key: [r[f'{key}_times'] for r in records if f'{key}_times' in r] for key in ('run', 'compile')}
    if not times['run']:
        return
    for key, least in (('run', LEAST_MEAN), ('compile', LEAST_COMPILE)):
        mean = statistics.geometric_mean(times[key])
        print(f'{key}: {mean:.2f} times as fast, geometric mean of {len(times[key])} (at least {least}'
              f'{"" if mean >= least else ": MISSED"}); the least is {min(times[key]):.2f}')
    slow = [r['name'] for r in records if r.get('run_times', LEAST) < LEAST]
    if slow:
        print(f'below {LEAST}, MISSED:', ', '.join(slow))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--run', required=True, help='kiln-run')
    turns.add_arguments(parser, rounds=5)
    options = parser.parse_args()
    folder = os.environ.get('KILN_WORKLOADS_DIR')
    paths = {p.stem: p for p in sorted(pathlib.Path(folder, 'hlo').glob('*.hlo'))} if folder else {}
    if not paths:
        print('KILN_WORKLOADS_DIR has no programs in HLO text: nothing is measured')
        return 0
    print(f'{options.threads} threads; ms of Kiln, of XLA, and how many times as fast Kiln is')
    print(f'{"":46}{"run":>25}{"compile":>25}  difference', flush=True)
    workers = [turns.Worker(side, [sys.executable, '-W', 'ignore', HERE / 'worker.py', side,
                                   str(options.threads)], os.environ) for side in SIDES]
    records = []

    def all_records():
        for name in turns.chosen(paths, options):
            records.append(measure(workers, paths[name], options))
            yield records[-1]

    failed = turns.report(all_records(), row, agrees, options)
    for worker in workers:
        worker.end()
    summary(records)
    if failed:
        print('Results differ, or there are none:', ', '.join(failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
