#!/usr/bin/python3
"""usage: aarch64.py --aot KILN_AOT --source DIR

Programs compiled for AArch64, with the run time's core compiled for it as docs/ahead-of-time.md says,
run by qemu's user mode. Skipped where there is no qemu-aarch64 or no aarch64-linux-gnu-g++;
KILN_TEST_QEMU and KILN_TEST_AARCH64_CXX name other commands, with their arguments.
"""

import argparse
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def command(variable, default):
    words = shlex.split(os.environ.get(variable, default))
    if not shutil.which(words[0]):
        print(f'{words[0]} is not installed')
        sys.exit(SKIPPED)
    return words


def main():
    parser = argparse.ArgumentParser()
    for name in ('aot', 'source'):
        parser.add_argument('--' + name, required=True)
    args = parser.parse_args()
    qemu = command('KILN_TEST_QEMU', 'qemu-aarch64')
    compiler = command('KILN_TEST_AARCH64_CXX', 'aarch64-linux-gnu-g++')
    with tempfile.TemporaryDirectory() as work:
        programs = [f'{HERE}/axpy.hlo', f'{HERE}/sums.hlo',
                    f'{args.source}/docs/examples/digits_step.hlo']
        objects = []
        for program in programs:
            objects.append(f'{work}/{os.path.basename(program)}.o')
            header = f'{work}/{os.path.basename(program)[:-4]}.h'
            subprocess.run([args.aot, program, '--target', 'aarch64', '-o', objects[-1],
                            '--header', header], check=True)
        folders = [f'-I{args.source}/src', f'-I{args.source}/include', f'-I{work}']
        core = glob.glob(f'{args.source}/src/rt/*.cc') + [f'{args.source}/src/runtime/launch.cc']
        for source in core:
            objects.append(f'{work}/{os.path.basename(source)}.o')
            subprocess.run([*compiler, '-std=c++20', '-Os', '-fno-exceptions', '-fno-rtti',
                            '-fno-threadsafe-statics', *folders, '-c', source, '-o', objects[-1]],
                           check=True)
        subprocess.run([*compiler, '-x', 'c', '-O1', *folders, '-c', f'{HERE}/cross.c', '-o',
                        f'{work}/cross.o'], check=True)
        subprocess.run([*compiler, '-static', f'{work}/cross.o', *objects, '-lm', '-pthread', '-o',
                        f'{work}/cross'], check=True)
        return subprocess.run([*qemu, f'{work}/cross'], timeout=100).returncode


if __name__ == '__main__':
    sys.exit(main())
