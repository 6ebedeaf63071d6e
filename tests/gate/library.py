#!/usr/bin/python3
"""usage: library.py exports|needed|soname|size|plugin LIBRARY

What the library promises to whoever loads it. `exports` compares with src/capi/exports.map, where
that file lists every function. `plugin` is about JAX's plugin: its table, and what its Python package
uses, libkiln.so beside it, and little code of its own.
"""

import os
import re
import subprocess
import sys
import tempfile

NEEDED = re.compile(r'lib(c|m)\.so\.6$|ld-linux-[a-z0-9_-]+\.so\.\d+$')
MAX_BYTES = 40 * 1000 * 1000
MAX_PLUGIN_BYTES = 1500 * 1000
PLUGIN_EXPORTS = ['GetPjrtApi', 'KilnPjrtRegisterFfiTarget', 'KilnPjrtRegisterFfiType',
                  'KilnPjrtSetPythonCallback']


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def dynamic(library, tag):
    return re.findall(rf'\({tag}\)[^\[]*\[([^\]]*)\]', output('readelf', '-dW', library))


def exports(library):
    symbols = [line.split() for line in
               output('nm', '-D', '--defined-only', '--format=posix', library).split('\n') if line]
    names = {s[0].split('@')[0] for s in symbols}
    errors = [f'{n} is exported' for n in sorted(names) if not n.startswith('kiln_')]
    errors += [f'{s[0]} is not a function' for s in symbols
               if s[0].startswith('kiln_') and s[1] not in 'TA']
    listed = os.path.join(os.path.dirname(__file__), '../../src/capi/exports.map')
    if os.path.exists(listed):
        with open(listed) as f:
            declared = set(re.findall(r'\b(kiln_\w+)\s*;', f.read()))
        errors += [f'{n} is in exports.map, not in the library' for n in sorted(declared - names)]
        errors += [f'{n} is in the library, not in exports.map' for n in sorted(names - declared)]
    if not names:
        errors.append('nothing is exported')
    return errors, f'{len(names)} functions'


def needed(library):
    names = dynamic(library, 'NEEDED')
    return [f'needs {n} at run time' for n in names if not NEEDED.match(n)], ', '.join(names)


def soname(library):
    names = dynamic(library, 'SONAME')
    expected = '.'.join(os.path.basename(library).split('.')[:3])
    return [] if names == [expected] else [f'soname is {names}, not {expected}'], expected


def stripped_size(library):
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, 'stripped')
        subprocess.run(['strip', '-o', stripped, library], check=True)
        return os.path.getsize(stripped)


def size(library):
    size = stripped_size(library)
    text = f'{size / 1e6:.1f} MB stripped'
    return [] if size <= MAX_BYTES else [f'{text}; the limit is {MAX_BYTES / 1e6:.0f} MB'], text


def plugin(library):
    names = output('nm', '-D', '--defined-only', '--format=posix', library).split('\n')
    names = sorted(n.split()[0] for n in names if n)
    errors = [] if names == PLUGIN_EXPORTS else [f'exports {", ".join(names)}']
    errors += [f'needs {n} at run time' for n in dynamic(library, 'NEEDED')
               if not NEEDED.match(n) and not n.startswith('libkiln.so.')]
    if dynamic(library, 'RUNPATH') + dynamic(library, 'RPATH') != ['$ORIGIN']:
        errors.append('does not look for libkiln.so beside itself')
    size = stripped_size(library)
    if size > MAX_PLUGIN_BYTES:
        errors.append(f'{size} bytes stripped; the limit is {MAX_PLUGIN_BYTES}')
    return errors, f'{", ".join(names)}, {size / 1e3:.0f} kB stripped'


def main():
    check, library = sys.argv[1:]
    checks = {'exports': exports, 'needed': needed, 'soname': soname, 'size': size,
              'plugin': plugin}
    errors, good = checks[check](library)
    print('\n'.join(errors) if errors else good)
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
