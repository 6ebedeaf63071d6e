#!/usr/bin/python3
"""usage: hlo_modules.py LIBRARY PACKAGE [--select REGEX] [--every N] [--json FILE] [--folder DIR]

Reads, compiles and runs the modules of XLA's own tests (hlo/xla_tests in $KILN_CONFORMANCE_DIR, whose
README says what is asked of each), each in a process of its own, and compares the results with the
evaluator's. Holds the shares that are read and that agree to the bounds below. Exits with 77 where
there are no modules. LIBRARY is libkiln.so, PACKAGE the folder of the Python binding.
"""

import argparse
import collections
import json
import os
import pickle
import re
import resource
import select
import signal
import sys
import tarfile
import tempfile
import time

# Percent of all modules, some of which are malformed on purpose.
LEAST_READ = 97
# Percent of the modules that one process can run without a library of a vendor's.
LEAST_AGREED = 99
FINE = ('agree', 'ran', 'compiled')
SECONDS = 20
MOST_ARGUMENT_BYTES = 1 << 28
MEMORY = 8 << 30
# What the evaluator does in a few seconds.
MOST_FLOPS = 1 << 30
# Of the largest magnitude of a result.
TOLERANCES = {'f64': 1e-6, 'c128': 1e-6, 'f32': 1e-3, 'c64': 1e-3, 'f16': 2e-2, 'bf16': 2e-2}
# Bits of mantissa.
NARROW = {'f8e5m2': 2, 'f8e4m3': 3, 'f8e4m3fn': 3, 'f8e4m3b11fnuz': 3, 'f8e4m3fnuz': 3,
          'f8e5m2fnuz': 2, 'f8e3m4': 4, 'f8e8m0fnu': 0, 'f6e2m3fn': 3, 'f6e3m2fn': 2,
          'f4e2m1fn': 1}
NUMPY = {'f32': 'float32', 'f64': 'float64', 'f16': 'float16', 'c64': 'complex64',
         'c128': 'complex128'}


class Module:
    """Reads, compiles, runs and compares one module, in a process of its own."""

    def __init__(self, path, flags):
        import numpy
        import kiln
        self.np, self.kiln, self.flags = numpy, kiln, flags
        self.path = path
        self.context = kiln.Context(threads=1, gpu='OFF', cache_bytes=-1)
        self.reference = self.context.device('REFERENCE:0')
        self.draws = numpy.random.default_rng(1)

    def converted(self, array, dtype, result):
        """An array of one type in another, by the evaluator, as a buffer."""
        graph = self.context.graph('convert')
        graph.set_results(graph.convert(graph.parameter(dtype, array.shape), result))
        return graph.compile(self.reference)(array)[0]

    def argument(self, shape):
        np, draws, dtype, dims = self.np, self.draws, shape.dtype, shape.dims
        if dtype == 'token':
            return self.reference.zeros('token')
        if dtype == 'pred':
            return draws.integers(0, 2, dims).astype(bool)
        if dtype[0] in 'su':
            bits = int(dtype[1:])
            most = (2 if bits <= 2 else 8) if dims else (2 if bits <= 2 else 4)
            values = draws.integers(0, most, dims)
            if bits >= 8:
                return values.astype(f'{"u" if dtype[0] == "u" else ""}int{bits}')
            return self.converted(values.astype('int32'), 's32', dtype)
        if dtype == 'f8e8m0fnu':
            return self.converted(np.asarray(2.0 ** draws.integers(-3, 4, dims), 'float32'), 'f32',
                                  dtype)
        values = draws.uniform(-1, 1, dims)
        if dtype[0] == 'c':
            values = values + 1j * draws.uniform(-1, 1, dims)
        if dtype in NUMPY:
            return np.asarray(values, NUMPY[dtype])
        return self.converted(np.asarray(values, 'float32'), 'f32', dtype)

    def numbers(self, buffer):
        """The elements as NumPy's own."""
        dtype = buffer.shape.dtype
        if dtype in ('bf16', *NARROW):
            wide = self.converted(buffer.to(self.reference), dtype, 'f32')
            return self.np.array(wide)
        if dtype in ('s2', 's4', 'u2', 'u4', 's1', 'u1'):
            return self.np.frombuffer(buffer.tobytes(), 'int8')
        return self.np.array(buffer)

    def difference(self, k, x, y):
        """Nothing if two buffers are near enough."""
        np, dtype = self.np, x.shape.dtype
        if x.shape != y.shape:
            return f'result {k} is {x.shape}, the evaluator\'s {y.shape}'
        if dtype == 'token':
            return ''
        # What follows takes long for large arrays.
        if x.tobytes() == y.tobytes():
            return ''
        a, b = self.numbers(x).ravel(), self.numbers(y).ravel()
        if dtype not in TOLERANCES and dtype not in NARROW:
            return '' if (a == b).all() else f'{(a != b).sum()} of {a.size} of result {k} differ'
        for a, b in ((a.real, b.real), (a.imag, b.imag)) if dtype[0] == 'c' else ((a, b),):
            finite = np.isfinite(b)
            largest = float(np.abs(b[finite]).max(initial=0))
            different = a != b  # those of two NaNs, too
            a, b = a[different].astype('float64'), b[different].astype('float64')
            finite = np.isfinite(b)
            same = (np.isnan(a) == np.isnan(b)) & (finite | np.isnan(b) | (a == b))
            same &= finite == np.isfinite(a)
            if dtype in NARROW:
                bound = 2.0 ** -NARROW[dtype] * np.abs(b[finite])
            else:
                bound = TOLERANCES[dtype] * largest
            error = np.abs(a[finite & np.isfinite(a)] - b[finite & np.isfinite(a)])
            near = error <= (bound[np.isfinite(a[finite])] if dtype in NARROW else bound)
            if not same.all() or not near.all():
                return (f'{(~same).sum() + (~near).sum()} of {different.size} of result {k} ({x.shape!r}) '
                        f'differ, at most by {error.max(initial=0)} of {largest}')
        return ''

    def run(self):
        """The stage at which it ended, and why."""
        stage = 'read'
        try:
            with open(self.path, encoding='utf-8') as f:
                graph = self.context.graph_from_hlo_text(f.read())
            stage = 'print'
            text = graph.to_hlo_text()
            again = self.context.graph_from_hlo_text(text).to_hlo_text()
            if again != text:
                return 'print', 'what is printed reads as another module'
            stage = 'compile'
            program = graph.compile(self.context.device('CPU:0'))
            shapes = program.argument_shapes
            if sum(s.byte_size for s in shapes) > MOST_ARGUMENT_BYTES:
                return 'compiled', 'large arguments'
            if 'endless' in self.flags:
                return 'compiled', 'endless'
            stage = 'arguments'
            arguments = [self.argument(s) for s in shapes]
            stage = 'run'
            device = self.context.device('CPU:0')
            there = [a.to(device) if isinstance(a, self.kiln.Buffer) else device.copy(a)
                     for a in arguments]
            try:
                results = program.run(there, timeout=SECONDS, donate=bool(program.aliases))
            except self.kiln.KilnError as error:
                if error.code != self.kiln.Code.DEADLINE_EXCEEDED:
                    raise
                return 'compiled', 'does not end'
            if 'random' in self.flags:
                return 'ran', 'random'
            if program.cost.flops > MOST_FLOPS:
                return 'ran', 'too much for the evaluator'
            stage = 'evaluate'
            evaluator = graph.compile(self.reference)
            try:
                wanted = evaluator.run(
                    [a if isinstance(a, self.kiln.Buffer) else self.reference.copy(a)
                     for a in arguments], timeout=SECONDS, donate=bool(program.aliases))
            except self.kiln.KilnError as error:
                if error.code != self.kiln.Code.DEADLINE_EXCEEDED:
                    raise
                return 'ran', 'too much for the evaluator, or endless'
            stage = 'compare'
            for k, (x, y) in enumerate(zip(results, wanted)):
                different = self.difference(k, x, y)
                if different:
                    return 'differ', different
            return 'agree', ''
        except self.kiln.KilnError as error:
            return stage, f'{error.code.name}: {error}'
        except Exception as error:  # of the binding or of this script
            return stage, f'{type(error).__name__}: {error}'


def in_child(root, path, flags):
    """A row: path, flags, stage, reason, seconds; a module that ends its process is told, too."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        null = os.open('/dev/null', os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        with os.fdopen(writing, 'wb') as pipe:
            pickle.dump(Module(os.path.join(root, path), flags).run(), pipe)
        os._exit(0)
    os.close(writing)
    data = b''
    while time.monotonic() - start < 3 * SECONDS:
        ready, _, _ = select.select([reading], [], [], 1)
        part = os.read(reading, 1 << 16) if ready else None
        if part == b'':
            break
        data += part or b''
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(reading)
    status = os.waitpid(pid, 0)[1]
    if data and not os.WIFSIGNALED(status):
        stage, reason = pickle.loads(data)
    else:
        stage, reason = 'ended', f'by signal {os.WTERMSIG(status)}' if os.WIFSIGNALED(status) else ''
    return {'path': path, 'flags': flags, 'stage': stage, 'reason': reason,
            'seconds': round(time.monotonic() - start, 3)}


def modules_of(root):
    """{path: flags}, in the order of the index."""
    with open(os.path.join(root, 'index.tsv'), encoding='utf-8') as f:
        rows = [line.rstrip('\n').split('\t') for line in f]
    return {row[0]: row[2].split(',') if len(row) > 2 and row[2] else [] for row in rows}


def is_of_one_process(row):
    """Whether one process can run the module without a library of a vendor's."""
    if row['stage'] in FINE:
        return True
    if 'refused' in row['flags']:
        return False  # no module is asked to do more than XLA
    if 'processes' in row['flags'] and row['stage'] == 'read':
        return False  # XLA has not tried them; they count among those that are read
    if 'custom-call' in row['flags'] and 'no function is registered' in row['reason']:
        return False
    needs_others = ('needs other processes', 'has no compiled code: tokens', 'ragged-all-to-all',
                    'of collective-permute')
    others = 'processes' in row['flags'] and any(n in row['reason'] for n in needs_others)
    # Nobody fills the queue.
    return not others and 'expand-tokens: infeed' not in row['reason']


def report(rows):
    """Prints the shares and what failed; whether they are enough."""
    print(dict(collections.Counter(row['stage'] for row in rows)))
    counted = [row for row in rows if is_of_one_process(row)]
    for row in counted:
        if row['stage'] not in FINE:
            print(f'{row["path"]}: {row["stage"]}: {row["reason"][:200]}')
    read = 100 * sum(row['stage'] not in ('read', 'print') for row in rows) / len(rows)
    agreed = 100 * sum(row['stage'] in FINE for row in counted) / max(1, len(counted))
    print(f'{read:.2f} % of {len(rows)} modules are read; of {len(counted)} that one process can '
          f'run {agreed:.2f} % run and agree')
    return read >= LEAST_READ and agreed >= LEAST_AGREED


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('library')
    parser.add_argument('package')
    parser.add_argument('--select', default='')
    parser.add_argument('--every', type=int, default=1, help='only each N-th module')
    parser.add_argument('--json')
    parser.add_argument('--folder', help='the modules, where they are unpacked already')
    arguments = parser.parse_args()
    os.environ['KILN_LIBRARY'] = arguments.library
    sys.path.insert(0, arguments.package)
    import kiln
    import numpy
    del kiln, numpy  # children have them loaded
    with tempfile.TemporaryDirectory() as folder:
        root = arguments.folder
        if not root:
            corpus = os.environ.get('KILN_CONFORMANCE_DIR')
            archive = os.path.join(corpus or '', 'hlo/xla_tests/modules.tar.xz')
            if not corpus or not os.path.exists(archive):
                print('KILN_CONFORMANCE_DIR has no modules of XLA\'s tests')
                sys.exit(77)
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
            root = folder
        rows = []
        with open(arguments.json or os.devnull, 'w', encoding='utf-8') as f:
            for path, flags in list(modules_of(root).items())[::arguments.every]:
                if re.search(arguments.select, path):
                    rows.append(in_child(root, path, flags))
                    print(json.dumps(rows[-1]), file=f, flush=True)
    if not report(rows):
        sys.exit(1)


if __name__ == '__main__':
    main()
