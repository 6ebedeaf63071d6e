"""usage: compare.py [--peers PYTHON] [--jax PYTHON] [--library NAME]... [--json FILE] [--rounds N]
                  [--seconds S] [--threads N] [CASE...]

Networks for images with frozen weights, and single layers of such, on Kiln (features last, and first),
ONNX Runtime, oneDNN (by PyTorch's Inductor) and XLA's CPU: a process for each, called in turn, on the
same images and weights. Compares the numbers, and prints milliseconds of a run, and how many times as
fast Kiln is as ONNX Runtime and as the best. CASE is a part of a name.
"""

import argparse
import datetime
import math
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import turns  # noqa: E402  pylint: disable=wrong-import-position

import cases  # noqa: E402  pylint: disable=wrong-import-position

LIBRARIES = ('kiln', 'kiln-first', 'onnxruntime', 'onednn', 'xla')
OWN = LIBRARIES[:2]
# Of the largest number of a result.
TOLERANCE = 1e-4


# Of a processor, what matters to products.
FEATURES = ('avx2', 'fma', 'avx512f', 'avx512_vnni', 'avx512_bf16', 'amx_bf16', 'asimd', 'sve')


def machine(workers):
    """What the figures hold for: features of the processor, processors, the day, versions."""
    with open('/proc/cpuinfo', encoding='ascii') as told:
        flags = next((line.split(':')[1].split() for line in told
                      if line.startswith(('flags', 'Features'))), [])
    return {'features': [name for name in FEATURES if name in flags],
            'processors': len(os.sched_getaffinity(0)), 'day': datetime.date.today().isoformat(),
            'versions': {worker.name: worker.ask('version')['version'] for worker in workers}}


def workers_of(options, folder):
    environment = os.environ | {'OMP_NUM_THREADS': str(options.threads), 'JAX_PLATFORMS': 'cpu'}
    pythons = {name: options.jax if name == 'xla' else options.peers for name in LIBRARIES}
    return [turns.Worker(name, [python, '-W', 'ignore', HERE / 'worker.py', name,
                                str(options.threads), folder], environment)
            for name, python in pythons.items()
            if python and name in (options.library or LIBRARIES)]


def difference(folder, names):
    """The largest difference of the first library's numbers and another's, of the largest number."""
    first = np.load(folder / f'{names[0]}.npy')
    largest = 0.0
    for name in names[1:]:
        other = np.load(folder / f'{name}.npy')
        if other.shape != first.shape:
            return math.inf
        largest = max(largest, float(np.abs(other - first).max()))
    return largest / float(np.abs(first).max())


def measure(workers, name, folder, options):
    """The record of a case: seconds of a run by library."""
    record = {'name': name}
    for worker in workers:
        answer = worker.ask('prepare ' + name)
        if 'error' in answer:
            return record | {'error': f'{worker.name}: {answer["error"]}'}
        record |= answer
    record['difference'] = difference(folder, [worker.name for worker in workers])
    samples = {worker.name: [] for worker in workers}
    for number in range(options.rounds):
        # Who goes first changes from round to round.
        for at in range(len(workers)):
            worker = workers[(at + number) % len(workers)]
            samples[worker.name].append(worker.ask(f'sample {options.seconds}')['seconds'])
    for worker in workers:
        worker.ask('drop')
    record['run'] = run = {key: statistics.median(values) for key, values in samples.items()}
    own = min(run[key] for key in OWN if key in run)
    others = [value for key, value in run.items() if key not in OWN]
    record['times_as_fast'] = min(others, default=own) / own
    record['times_as_fast_as_onnxruntime'] = run.get('onnxruntime', math.nan) / own
    return record


def row(record, names):
    cells = [f'{record["name"]:38}']
    if 'error' in record:
        return cells[0] + record['error']
    cells += [f'{record["run"][name] * 1e3:12.4g}' for name in names]
    cells.append(f'{record["times_as_fast_as_onnxruntime"]:10.2f}{record["times_as_fast"]:10.2f}'
                 f'  {record["difference"]:.1e}')
    return ''.join(cells)


def agrees(record):
    return record.get('difference', math.inf) <= TOLERANCE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--peers', default=sys.executable,
                        help='a Python with ONNX Runtime and PyTorch; Kiln is on PYTHONPATH')
    parser.add_argument('--jax', help='one with JAX')
    parser.add_argument('--library', action='append', choices=LIBRARIES, help='only these')
    turns.add_arguments(parser, rounds=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        workers = workers_of(options, folder)
        names = [worker.name for worker in workers]
        facts = machine(workers)
        turns.keep({'machine': facts}, options)
        print(', '.join(f'{key} {value}' for key, value in facts['versions'].items()))
        print(f'{options.threads} threads; ms of a run')
        print(f'{"":38}' + ''.join(f'{name:>12}' for name in names) + '    of ONNX   of best  numbers',
              flush=True)
        records = (measure(workers, name, folder, options)
                   for name in turns.chosen(cases.CASES, options))
        failed = turns.report(records, lambda record: row(record, names), agrees, options)
        for worker in workers:
            worker.end()
    if failed:
        print('Numbers differ, or there are none:', ', '.join(failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
