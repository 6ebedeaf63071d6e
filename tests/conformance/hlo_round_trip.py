#!/usr/bin/python3
"""usage: hlo_round_trip.py LIBRARY PACKAGE KILN_OPT [--every N] [--jax PYTHON]

What Kiln prints of the HLO corpora, as it reads them and behind its passes, reads as the same module:
by Kiln, and, where a Python with JAX is given (or KILN_JAX_PYTHON names one), by XLA's own parser and
from there by Kiln again. Exits with 77 where there are no modules. LIBRARY is libkiln.so, PACKAGE the
folder of the Python binding.
"""

import argparse
import collections
import glob
import os
import re
import subprocess
import sys
import tarfile
import tempfile

# Ops that XLA of the JAX release that is known to be tried has with other attributes.
NEWER = ('is_stable=true',)
# Reads the files of a folder by XLA's parser; what it prints stands beside them.
PARSER = r'''
import os, sys
try:
    from jaxlib import _hlo as xla
except ImportError:
    from jaxlib.xla_client import _xla as xla
for name in sorted(os.listdir(sys.argv[1])):
    print(name, flush=True)
    path = os.path.join(sys.argv[1], name)
    try:
        text = xla.hlo_module_from_text(open(path, encoding='utf-8').read()).to_string()
    except Exception as error:
        text = 'refused: ' + str(error)
    with open(os.path.join(sys.argv[2], name), 'w', encoding='utf-8') as f:
        f.write(text)
'''
INSTRUCTION = re.compile(r'^  (?:ROOT )?%\S+ = (.*?[\]})]) ([a-z][\w-]*)\(', re.M)


def corpus(folder, every):
    """The paths of modules; those of XLA's tests are unpacked into the folder."""
    paths = []
    conformance = os.environ.get('KILN_CONFORMANCE_DIR')
    if conformance:
        archive = os.path.join(conformance, 'hlo/xla_tests/modules.tar.xz')
        if os.path.exists(archive):
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
            all_paths = glob.glob(os.path.join(folder, '**/*.hlo'), recursive=True)
            paths += sorted(filter(os.path.isfile, all_paths))[::every]
        paths += sorted(glob.glob(os.path.join(conformance, 'hlo/fuzz/*.hlo')))
    workloads = os.environ.get('KILN_WORKLOADS_DIR')
    if workloads:
        paths += sorted(glob.glob(os.path.join(workloads, 'hlo/*.hlo')))
    return paths


def kinds(text):
    """How many instructions of each shape and op there are."""
    return collections.Counter(match.groups() for match in INSTRUCTION.finditer(text))


class Printed:
    """Texts that Kiln printed, by the names under which errors show them."""

    def __init__(self, library, package):
        os.environ['KILN_LIBRARY'] = library
        sys.path.insert(0, package)
        import kiln
        self.kiln = kiln
        self.context = kiln.Context(threads=1, gpu='OFF', cache_bytes=-1)
        self.texts = {}
        self.failures = []

    def read(self, text):
        return self.context.graph_from_hlo_text(text).to_hlo_text()

    def add(self, name, text):
        """Keeps a text if it is read as it was printed."""
        try:
            again = self.read(text)
        except self.kiln.KilnError as error:
            self.failures.append(f'{name}: Kiln refuses what it printed: {error}')
            return
        if again != text:
            self.failures.append(f'{name}: what is printed reads as another module')
        self.texts[name] = text

    def add_modules(self, paths):
        for path in paths:
            with open(path, encoding='utf-8', errors='replace') as f:
                try:
                    text = self.read(f.read())
                except self.kiln.KilnError:
                    continue  # whether it should be read is another test's question
            self.add(path, text)

    def add_passes(self, paths, kiln_opt):
        for path in paths:
            for pipeline in ('cpu', 'gpu'):
                run = subprocess.run([kiln_opt, '--pipeline', pipeline, path], capture_output=True,
                                     text=True, timeout=120, check=False)
                if run.returncode == 0:
                    self.texts[f'{path} behind the passes for {pipeline}'] = run.stdout

    def check_by_xla(self, python):
        """XLA's parser takes each text, and Kiln reads its text as a module of the same ops."""
        names = {f'{k:05}.hlo': name for k, name in enumerate(self.texts)}
        with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
            for file, name in names.items():
                with open(os.path.join(ours, file), 'w', encoding='utf-8') as f:
                    f.write(self.texts[name])
            run = subprocess.run([python, '-c', PARSER, ours, theirs], capture_output=True,
                                 text=True, check=False)
            if run.returncode != 0:
                last = (run.stdout.split() or [''])[-1]
                self.failures.append(f'{names.get(last)}: XLA ends: {run.stderr[-500:]}')
                return 0
            for file, name in names.items():
                with open(os.path.join(theirs, file), encoding='utf-8') as f:
                    self.check_text_of_xla(name, f.read())
        return len(names)

    def check_text_of_xla(self, name, text):
        if text.startswith('refused: '):
            if not any(word in self.texts[name] for word in NEWER):
                self.failures.append(f'{name}: XLA refuses what Kiln printed: {text[:500]}')
            return
        if 'behind the passes' in name:
            return  # ops of the compiler alone are none of a user's
        try:
            again = self.read(text)
        except self.kiln.KilnError as error:
            self.failures.append(f'{name}: Kiln refuses what XLA printed: {error}')
            return
        if kinds(again) != kinds(self.texts[name]):
            differ = kinds(again) - kinds(self.texts[name]) or kinds(self.texts[name]) - kinds(again)
            self.failures.append(f'{name}: XLA\'s text of it has other ops: {differ}')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('library')
    parser.add_argument('package')
    parser.add_argument('kiln_opt')
    parser.add_argument('--every', type=int, default=1, help='only each N-th of XLA\'s modules')
    parser.add_argument('--jax', default=os.environ.get('KILN_JAX_PYTHON'))
    arguments = parser.parse_args()
    printed = Printed(arguments.library, arguments.package)
    with tempfile.TemporaryDirectory() as folder:
        paths = corpus(folder, arguments.every)
        if not paths:
            print('neither KILN_CONFORMANCE_DIR nor KILN_WORKLOADS_DIR has modules')
            sys.exit(77)
        printed.add_modules(paths)
        count = len(printed.texts)
        # Large modules take long to compile.
        small = [path for path in paths if os.path.getsize(path) < 20000]
        printed.add_passes(small[::8], arguments.kiln_opt)
    by_xla = printed.check_by_xla(arguments.jax) if arguments.jax else 0
    print(f'{count} modules and {len(printed.texts) - count} behind passes were printed and read; '
          f'{by_xla} of them by XLA' + ('' if arguments.jax else ', as KILN_JAX_PYTHON is not set'))
    for failure in printed.failures:
        print(failure)
    sys.exit(1 if printed.failures else 0)


if __name__ == '__main__':
    main()
