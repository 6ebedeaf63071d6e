#!/usr/bin/python3
"""usage: run_time.py --cc CC --include DIR --library libkiln_rt.a --aot KILN_AOT

What libkiln_rt.a consists of, and what programs take of it: the core has nothing of the C++ library;
a part of the library of functions has one visible symbol and needs the C libraries only; a small
program is small, with and without an FFT, has no other parts, and is linked in every usual way.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# All that instances in memory of the caller's need of others.
PLACED = {'instance', 'run', 'launch', 'cpu'}
OF_OTHERS = {'memcpy', 'memmove', 'memset', 'strlen'}
PARTS = {'fft', 'linear', 'lapack', 'random', 'checks'}
# A tiny program's bytes beside libc; a program's whose parts of the run time are not the large ones.
MOST_OF_TINY, MOST = 40_000, 1_000_000

TRANSFORM = """
#include "spectrum.h"
static _Alignas(64) float x[64], r[33];
int main(void) {
  kiln_aot_pool* pool = kiln_aot_pool_create(2);
  kiln_aot_instance* a = kiln_aot_create(&spectrum_program, pool, 0);
  for (int i = 0; i < 64; ++i) x[i] = 1;
  int failed = !a || spectrum_run(a, x, r, 0) || r[0] != 64;
  kiln_aot_destroy(a);
  kiln_aot_pool_destroy(pool);
  return failed;
}
"""


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f'{" ".join(command)}\nreturned {result.returncode}:\n{result.stdout}')
    return result.stdout


def read(path):
    with open(path) as f:
        return f.read()


def symbols(path, *options):
    """(name, letter) of each symbol."""
    lines = [line.split() for line in run('nm', *options, path).split('\n')]
    return [(words[-1], words[-2]) for words in lines if len(words) >= 2]


def check_members(library, work):
    errors = []
    members = run('ar', 't', library).split()
    subprocess.run(['ar', 'x', library], cwd=work, check=True)
    with open(library, 'rb') as f:
        if b'llvm' in f.read():
            errors.append('the library has a part of LLVM in it')
    defined_by_core = set()
    undefined_by_core = set()
    undefined_by_placed = set()
    for member in members:
        names = symbols(f'{work}/{member}')
        # "u" are inline variables, of which a process has one.
        visible = {n for n, kind in names if (kind.isupper() or kind == 'u') and kind != 'U'}
        undefined = {n for n, kind in names if kind == 'U'}
        name = member.split('.')[0]
        if name in PARTS:
            if visible != {f'kiln_aot_{name}'}:
                errors.append(f'{member} defines {sorted(visible)}')
            errors += [f'{member} needs {n}' for n in undefined if n.startswith(('_Z', 'kiln'))]
        else:
            defined_by_core |= visible
            undefined_by_core |= undefined
            if name in PLACED:
                undefined_by_placed |= undefined
    missing = {n for n in undefined_by_core - defined_by_core
               if n.startswith(('_Z', '__cxa', '_Unwind', '__gxx', 'kiln'))}
    errors += [f'the core needs {n}' for n in sorted(missing)]
    unexpected = undefined_by_placed - defined_by_core - OF_OTHERS - {'_GLOBAL_OFFSET_TABLE_'}
    errors += [f'instances in memory of the caller\'s need {n}' for n in sorted(unexpected)]
    parts = {m.split('.')[0] for m in members} & PARTS
    if parts != PARTS:
        errors.append(f'the parts are {sorted(parts)}')
    return errors


def make(args, work, program, source):
    run(args.aot, f'{HERE}/{program}.hlo', '--name', program, '-o', f'{work}/{program}.o')
    with open(f'{work}/{program}_main.c', 'w') as f:
        f.write(source)
    binary = f'{work}/{program}'
    run(args.cc, '-O2', '-Wall', '-Werror', f'-I{args.include}', f'-I{work}',
        f'{work}/{program}_main.c', f'{work}/{program}.o', args.library, '-lm', '-pthread',
        '-Wl,--gc-sections', '-o', binary)
    run(binary)
    names = {n for n, _ in symbols(binary)}
    run('strip', binary)
    return names, os.path.getsize(binary), run('ldd', binary)


# Ways of linking. The linker's warnings are errors, about relocations in code for instance.
WAYS = {
    'pie': ['-pie', '-fPIE', '-Wl,-z,text'],
    'no-pie': ['-no-pie', '-fno-PIE'],
    'static': ['-static'],
    'static-pie': ['-static-pie', '-fPIE'],
    'now': ['-Wl,-z,now', '-Wl,-z,relro', '-Wl,-z,defs'],
    'lto': ['-flto', '-O2'],
    'lld': ['-fuse-ld=lld', '-Wl,--gc-sections', '-Wl,--icf=all'],
}


def check_ways_of_linking(args, work):
    """The programs of check_programs again."""
    errors = []
    for way, flags in WAYS.items():
        if way == 'lld' and not shutil.which('ld.lld'):
            continue
        for program in ('axpy', 'spectrum'):
            binary = f'{work}/{program}.{way}'
            run(args.cc, *flags, '-Wl,--fatal-warnings', f'-I{args.include}', f'-I{work}',
                f'{work}/{program}_main.c', f'{work}/{program}.o', args.library, '-lm', '-pthread',
                '-o', binary)
            run(binary)
            headers = run('readelf', '-lW', binary)
            stack = [line.split() for line in headers.split('\n') if 'GNU_STACK' in line]
            if len(stack) != 1 or 'E' in stack[0][-2]:
                errors.append(f'{way}: the stack of {program} is executable')
    return errors


def check_programs(args, work):
    errors = []
    names, size, needed = make(args, work, 'axpy', read(f'{HERE}/tiny.c'))
    if size > MOST_OF_TINY:
        errors.append(f'the tiny program has {size} bytes; the most is {MOST_OF_TINY}')
    unwanted = [n for n in names if n.startswith('kiln_aot_') and
                n not in ('kiln_aot_place', 'kiln_aot_run', 'kiln_aot_target')]
    if unwanted or {'malloc', 'pthread_create'} & {n.split('@')[0] for n in names}:
        errors.append(f'the tiny program has {unwanted}, or allocates')
    names, transform_size, needed_by_transform = make(args, work, 'spectrum', TRANSFORM)
    if transform_size > MOST:
        errors.append(f'the program with an FFT has {transform_size} bytes; the most is {MOST}')
    others = [f'kiln_aot_{p}' for p in PARTS - {'fft'} if f'kiln_aot_{p}' in names]
    if others or 'kiln_aot_fft' not in names:
        errors.append(f'the program with an FFT has {others}')
    for text in (needed, needed_by_transform):
        if 'libstdc++' in text or 'libkiln' in text:
            errors.append(f'a program needs other libraries: {text}')
    print(f'tiny program: {size} bytes; with an FFT: {transform_size} bytes')
    return errors


def main():
    parser = argparse.ArgumentParser()
    for name in ('cc', 'include', 'library', 'aot'):
        parser.add_argument('--' + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        errors = (check_members(args.library, work) + check_programs(args, work) +
                  check_ways_of_linking(args, work))
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
