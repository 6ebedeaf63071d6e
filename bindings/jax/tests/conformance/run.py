#!/usr/bin/python3
"""usage: run.py [--python PYTHON] --plugin LIBRARY --out FOLDER [--cases N] [--write PAGE] [FILE...]

Runs JAX's own test files of $KILN_CONFORMANCE_DIR/jax on the platforms kiln and cpu, each file in a
process of its own, and compares: a case counts if it passes on cpu. FILE is a name without
"_test.py"; without any, all files run. Exits with 0 if at least LEAST percent of the cases that count
pass, and none ended its process or hung; with 77 where there is no folder of tests. PYTHON has JAX;
it is this one where it is not given.

  --cases N    how many cases JAX generates of a parametrised test (10)
  --limit S    seconds for one case (300); its process is ended then
  --jobs N     how many files run at a time (the number of processors)
  --again      runs all cases anew. Outcomes are otherwise kept below FOLDER: those of cpu for one
               version of JAX, those of kiln for one pair of libraries and one package
  --sample S   runs on kiln only, for at most S seconds, which the files share; no case may fail that
               reasons.txt does not name
  --share N    every Nth case only
  --write PAGE puts the table between the marks of that page, if all files run
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import results

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1]
LEAST = 99.0
# Set when files that run are to be given up.
STOP = threading.Event()
# Of the sample in `make test`: files that are quick and touch much.
SAMPLE = ['lax_vmap', 'lax_control_flow', 'linalg', 'random', 'custom_api', 'nn', 'lax', 'fft',
          'lax_numpy_indexing', 'lax_numpy_operators', 'batching', 'mutable_array']


class Platform:
    """A platform of JAX, and the outcomes of its cases below a folder."""

    def __init__(self, name, arguments):
        self.arguments = arguments
        self.root = pathlib.Path(os.environ['KILN_CONFORMANCE_DIR']) / 'jax'
        self.environment = {
            **os.environ, 'JAX_NUM_GENERATED_CASES': str(arguments.cases), 'JAX_PLATFORMS': 'cpu',
            'PYTHONDONTWRITEBYTECODE': '1', 'PYTHONPATH': str(HERE),
            'PYTHONFAULTHANDLER': '1', 'KILN_CASE_SHARE': str(arguments.share)}
        self.environment.pop('JAX_TEST_DUT', None)
        kept_for = arguments.version
        if name == 'kiln':
            self.environment.update(
                JAX_PLATFORMS='kiln,cpu', JAX_TEST_DUT='kiln', KILN_PJRT_LIBRARY=arguments.plugin,
                PYTHONPATH=f'{HERE}{os.pathsep}{PACKAGE}')
            kept_for += '-' + digest(pathlib.Path(arguments.plugin))
        self.folder = (pathlib.Path(arguments.out).resolve() /
                       f'{name}-{arguments.cases}-{arguments.share}-{kept_for}')
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, file, end=float('inf')):
        """{case: its outcome}, of a file given by its name; at the time `end` it stops."""
        log = self.folder / f'{file}.jsonl'
        whole = log.with_suffix('.done')
        if self.arguments.again:
            for path in (log, whole, log.with_suffix('.txt')):
                path.unlink(missing_ok=True)
        while not whole.exists() and time.monotonic() < end and not STOP.is_set():
            self._process(file, log, end)
        return rows_of(log)

    def _process(self, file, log, end):
        """Runs the cases of a file that have no outcome yet, until the process ends. A case that ends
        it, or does not end in time, has that for its outcome."""
        command = [self.arguments.python, '-P', '-m', 'pytest', '-q', '-s', '--tb=short', '-p',
                   'case_log', '-p', 'no:cacheprovider', f'tests/{file}_test.py']
        text = log.with_suffix('.txt')
        with open(text, 'a', encoding='utf-8') as output:
            process = subprocess.Popen(command, cwd=self.root, stdout=output, stderr=output,
                                       start_new_session=True,
                                       env={**self.environment, 'KILN_CASE_LOG': str(log)})
            try:
                late = wait(process, log, self.arguments.limit, end)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        case = begun(log)
        if late and (time.monotonic() >= end or STOP.is_set()):
            return
        if case is None:
            if late or process.returncode not in (0, 1, 5):  # 5: no case was left
                sys.exit(f'{file}: {ended(process.returncode)} outside of the cases; see {text}')
            log.with_suffix('.done').touch()
            return
        outcome, said = ('hung', f'no end within {self.arguments.limit} s') if late else \
            ('crashed', ended(process.returncode))
        with open(log, 'a', encoding='utf-8') as f:
            f.write(json.dumps({'case': case, 'outcome': outcome, 'said': said, 'seconds': 0}) + '\n')


def digest(plugin):
    """Of the libraries and the package that the tests run on."""
    state = hashlib.sha256()
    for path in [plugin, plugin.parent / 'libkiln.so',
                 *sorted((PACKAGE / 'jax_plugins' / 'kiln').glob('*.py'))]:
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def wait(process, log, limit, end):
    """Waits until the process ends (False), its log has not grown for `limit` seconds, or the files
    are given up, as at the time `end` (True)."""
    size, since = -1, time.monotonic()
    while True:
        try:
            process.wait(1)
            return False
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        grown = log.stat().st_size if log.exists() else 0
        if grown != size:
            size, since = grown, now
        if now - since > limit or now > end or STOP.is_set():
            return True


def begun(log):
    """The case that began last, if it has no outcome."""
    if not log.exists():
        return None
    with open(log, encoding='utf-8') as f:
        lines = f.read().splitlines()
    last = json.loads(lines[-1]) if lines else {'outcome': ''}
    return None if 'outcome' in last else last['case']


def ended(code):
    return f'the process ended by {signal.Signals(-code).name}' if code < 0 else f'exit code {code}'


def rows_of(log):
    rows = {}
    if log.exists():
        with open(log, encoding='utf-8') as f:
            for row in map(json.loads, f):
                if 'outcome' in row:
                    rows[row['case']] = row
    return rows


def lines_of(file):
    counts = ', '.join(f'{len(cases)} {outcome}' for outcome, cases in sorted(file.by.items()))
    return f'{file.name}: {counts or "nothing"}'


def sample(arguments, files, reasons):
    """Runs on Kiln for a while. Every failure must be one that has a reason."""
    start = time.monotonic()
    platform = Platform('kiln', arguments)
    unknown, ran = 0, 0
    for number, name in enumerate(files, 1):
        end = start + arguments.sample * number / len(files)
        file = results.File(name, platform.run(name, end), {})
        ran += file.count('passed')
        print(lines_of(file), flush=True)
        for case in file.on_cpu_too:
            why = reasons.of(case)
            unknown += why is None
            print(f'  {case}: {file.kiln[case]["said"]}' + (f' ({why})' if why else ''), flush=True)
    print(f'{ran} passed, {unknown} failed without a reason in reasons.txt')
    return 0 if unknown == 0 and ran > 0 else 1


def file_of(name, kiln, cpu, reasons):
    """Of two runs, when they are at their ends."""
    file = results.File(name, kiln.result(), cpu.result())
    print(f'{lines_of(file)}; {len(file.counted)} count, {len(file.failed)} of them failed',
          flush=True)
    for case, row in file.failed.items():
        print(f'  {case}: {row["said"]}' + (f' ({why})' if (why := reasons.of(case)) else ''))
    return file


def compare(arguments, names, reasons):
    kiln, cpu = Platform('kiln', arguments), Platform('cpu', arguments)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = [(name, pool.submit(kiln.run, name), pool.submit(cpu.run, name))
                   for name in names]
        try:
            files = [file_of(*run, reasons) for run in running]
        except BaseException:
            STOP.set()
            raise
    ends = sum(f.count('crashed', 'hung') for f in files)
    share = results.percent(files)
    print(f'{sum(len(f.counted) for f in files)} cases count, {share:.2f} % of them pass, '
          f'{ends} ended the process or hung')
    if arguments.write and not arguments.files:
        results.write(arguments.write,
                      results.table(files, reasons, arguments.cases, arguments.version))
    return 0 if files and share >= LEAST and ends == 0 else 1


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('\n\n')[0], add_help=False)
    for option in ('plugin', 'out', 'write'):
        parser.add_argument(f'--{option}', required=option != 'write')
    parser.add_argument('--python', default=sys.executable)
    for option, default in (('cases', 10), ('limit', 300), ('sample', 0), ('share', 1),
                            ('jobs', os.cpu_count())):
        parser.add_argument(f'--{option}', type=int, default=default)
    parser.add_argument('--again', action='store_true')
    parser.add_argument('files', nargs='*')
    arguments = parser.parse_args()
    # The tests run in another folder. A virtual environment's Python is a link that has to stay one.
    arguments.plugin = os.path.abspath(arguments.plugin)
    if os.sep in arguments.python:
        arguments.python = os.path.abspath(arguments.python)
    folder = os.environ.get('KILN_CONFORMANCE_DIR')
    tests = pathlib.Path(folder or '') / 'jax' / 'tests'
    if not folder or not tests.is_dir():
        print('skipped: KILN_CONFORMANCE_DIR names no folder with JAX\'s tests')
        return 77
    arguments.version = subprocess.run(
        [arguments.python, '-c', 'import jax; print(jax.__version__)'], check=True,
        stdout=subprocess.PIPE, text=True, env={**os.environ, 'JAX_PLATFORMS': 'cpu'}).stdout.strip()
    reasons = results.Reasons(HERE / 'reasons.txt')
    if arguments.sample:
        return sample(arguments, arguments.files or SAMPLE, reasons)
    names = arguments.files or sorted(p.name[:-len('_test.py')] for p in tests.glob('*_test.py'))
    return compare(arguments, names, reasons)


if __name__ == '__main__':
    sys.exit(main())
