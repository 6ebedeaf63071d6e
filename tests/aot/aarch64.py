#!/usr/bin/python3
"""usage: aarch64.py --aot KILN_AOT --source DIR --build DIR

The run time for AArch64, cross-compiled into the folder --build as `make run-time` does it, and
programs compiled ahead of time, linked with it and run by qemu's user mode. Skipped, with the reason,
where the cross compiler or qemu is not installed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
COMPILER = 'aarch64-linux-gnu-gcc'
PROGRAMS = ['axpy.hlo', 'sums.hlo', 'spectrum.hlo', 'factors.hlo', 'eigenvalues.mlir', 'dice.hlo']


def find(program, package):
    if not shutil.which(program):
        print(f'AArch64 is not tested: {program} is not installed (Debian\'s package {package})')
        sys.exit(SKIPPED)
    return program


def build_run_time(source, build):
    """The path of the archive."""
    with open(f'{source}/src/cmake/aarch64.cmake') as f:
        assert COMPILER in f.read()
    subprocess.run(['cmake', '-S', source, '-B', build, '-G', 'Ninja',
                    '-DCMAKE_BUILD_TYPE=Release', '-DKILN_RUN_TIME_ONLY=ON',
                    f'-DCMAKE_TOOLCHAIN_FILE={source}/src/cmake/aarch64.cmake'],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', build, 'lib/libkiln_rt.a'], check=True)
    return f'{build}/lib/libkiln_rt.a'


def main():
    parser = argparse.ArgumentParser()
    for name in ('aot', 'source', 'build'):
        parser.add_argument('--' + name, required=True)
    args = parser.parse_args()
    find(COMPILER, 'gcc-aarch64-linux-gnu')
    find('aarch64-linux-gnu-g++', 'g++-aarch64-linux-gnu')
    qemu = find('qemu-aarch64', 'qemu-user')
    library = build_run_time(args.source, args.build)
    with tempfile.TemporaryDirectory() as work:
        objects = []
        for program in [f'{HERE}/{name}' for name in PROGRAMS] + [
                f'{args.source}/docs/examples/digits_step.hlo']:
            name, _ = os.path.splitext(os.path.basename(program))
            objects.append(f'{work}/{name}.o')
            subprocess.run([args.aot, program, '--target', 'aarch64', '-o', objects[-1]], check=True)
        subprocess.run([COMPILER, '-O1', '-Wall', '-Werror', f'-I{args.source}/include', f'-I{work}',
                        f'{HERE}/parts.c', *objects, library, '-static', '-lm', '-pthread', '-o',
                        f'{work}/parts'], check=True)
        return subprocess.run([qemu, f'{work}/parts'], timeout=200).returncode


if __name__ == '__main__':
    sys.exit(main())
