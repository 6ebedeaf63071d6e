#!/usr/bin/python3
"""usage: install.py --source DIR --build DIR --cmake CMAKE --cc CC --libdir lib --generator NAME

Installs into a temporary prefix and uses the installed tree from outside: through pkg-config and
through find_package(Kiln), the latter after the tree was moved, each with a program compiled ahead of
time, too. Then installs again over a library
that a running process has mapped: the file is replaced, not overwritten.
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = r"""
#include <stdio.h>
#include <kiln/kiln.h>
int main(void) { return printf("%s\n", kiln_version_string()) < 0 || kiln_version() == 0; }
"""

PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(Outside C)
find_package(Kiln @VERSION@ REQUIRED)
add_executable(outside outside.c)
target_link_libraries(outside PRIVATE kiln::kiln)
kiln_add_program(double twice.hlo NAME twice TARGET x86-64-v2)
add_executable(ahead ahead.c)
target_link_libraries(ahead PRIVATE double)
"""

AHEAD = r"""
#include <stdio.h>
#include "twice.h"
static _Alignas(64) float x[4] = {1, 2, 3, 4}, y[4];
int main(void) {
  kiln_aot_error error;
  kiln_aot_instance* twice = kiln_aot_create(&twice_program, NULL, &error);
  if (!twice || twice_run(twice, x, y, &error) != 0) return printf("%s\n", error.text), 1;
  kiln_aot_destroy(twice);
  return printf("%g\n", y[3]) < 0;
}
"""

TWICE = """HloModule twice
ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[4] add(x, x)
}
"""

# Holds the library mapped; calls into it once more when its input ends.
HOLDER = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.kiln_version(), flush=True)
sys.stdin.read()
library.kiln_version_string.restype = ctypes.c_char_p
print(library.kiln_version_string().decode(), flush=True)
"""


def run(*command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            **options)
    if result.returncode != 0:
        sys.exit(f'{" ".join(command)}\nreturned {result.returncode}:\n{result.stdout}')
    return result.stdout


def install(args, prefix, destdir=''):
    run(args.cmake, '--install', args.build, '--prefix', prefix, '--strip',
        env=dict(os.environ, DESTDIR=destdir))


def check_tree(prefix, libdir):
    wanted = ['include/kiln/kiln.h', f'{libdir}/libkiln.so', f'{libdir}/libkiln.so.0',
              f'{libdir}/libkiln_pjrt.so',
              f'{libdir}/pkgconfig/kiln.pc', f'{libdir}/cmake/Kiln/KilnConfig.cmake',
              'include/kiln/aot.h', 'bin/kiln-aot', f'{libdir}/libkiln_rt.a',
              f'{libdir}/pkgconfig/kiln_rt.pc']
    for path in wanted:
        if not os.path.exists(f'{prefix}/{path}'):
            sys.exit(f'{path} was not installed')
    for folder, _, names in os.walk(prefix):
        for name in names:
            if name.startswith('.'):
                sys.exit(f'{folder}/{name} was left behind')


def check_ahead(program):
    printed = run(program).strip()
    if printed != '8':
        sys.exit(f'a program compiled ahead of time printed {printed}, not 8')


def use_pkg_config(args, prefix, work):
    libdir = f'{prefix}/{args.libdir}'
    env = dict(os.environ, PKG_CONFIG_PATH=f'{libdir}/pkgconfig')
    flags = run('pkg-config', '--cflags', '--libs', 'kiln', env=env).split()
    run(args.cc, f'{work}/outside.c', *flags, f'-Wl,-rpath,{libdir}', '-o', f'{work}/outside')
    version = run('pkg-config', '--modversion', 'kiln', env=env).strip()
    printed = run(f'{work}/outside').strip()
    if printed != version:
        sys.exit(f'kiln.pc says {version}, the library {printed}')
    tool = run('pkg-config', '--variable=kiln_aot', 'kiln_rt', env=env).strip()
    run(tool, f'{work}/twice.hlo', '-o', f'{work}/twice.o')
    flags = run('pkg-config', '--cflags', '--libs', 'kiln_rt', env=env).split()
    run(args.cc, f'{work}/ahead.c', f'{work}/twice.o', *flags, '-o', f'{work}/ahead')
    check_ahead(f'{work}/ahead')
    return version


def use_find_package(args, prefix, work, version):
    with open(f'{work}/CMakeLists.txt', 'w') as f:
        f.write(PROJECT.replace('@VERSION@', version))
    run(args.cmake, '-S', work, '-B', f'{work}/build', '-G', args.generator,
        f'-DCMAKE_PREFIX_PATH={prefix}', f'-DCMAKE_C_COMPILER={args.cc}')
    run(args.cmake, '--build', f'{work}/build')
    printed = run(f'{work}/build/outside').strip()
    if printed != version:
        sys.exit(f'find_package: the library is {printed}, not {version}')
    check_ahead(f'{work}/build/ahead')
    # The examples are projects of their own, too; it is enough that CMake accepts them.
    run(args.cmake, '-S', f'{args.source}/docs/examples', '-B', f'{work}/examples',
        '-G', args.generator, f'-DCMAKE_PREFIX_PATH={prefix}', f'-DCMAKE_C_COMPILER={args.cc}')


def use_python(args, prefix, work, version):
    """The package finds the library that it was installed with; so does one that pip has installed,
    by pkg-config."""
    program = 'import kiln; print(kiln.__version__, kiln.Context(threads=1).device().name)'
    env = {name: value for name, value in os.environ.items()
           if name not in ('KILN_LIBRARY', 'PYTHONPATH')}
    packages = glob.glob(f'{prefix}/lib/python3*/*-packages')
    if len(packages) != 1 or not os.path.exists(f'{packages[0]}/kiln/py.typed'):
        sys.exit(f'the package for Python was not installed: {packages}')
    printed = run(sys.executable, '-c', program, cwd=work, env=dict(env, PYTHONPATH=packages[0]))
    if printed.strip() != f'{version} CPU:0':
        sys.exit(f'the installed package for Python printed {printed}')
    if subprocess.run([sys.executable, '-c', 'import pip, setuptools, wheel'],
                      stderr=subprocess.DEVNULL).returncode != 0:
        print('pip, setuptools or wheel is not installed: not tried')
        return
    # A copy: the build writes beside its sources.
    shutil.copytree(f'{args.source}/bindings/python', f'{work}/binding',
                    ignore=shutil.ignore_patterns('build', '*.egg-info', '__pycache__'))
    run(sys.executable, '-m', 'pip', 'install', '--quiet', '--no-build-isolation', '--no-index',
        '--no-deps', '--target', f'{work}/site', f'{work}/binding', env=env)
    env['PKG_CONFIG_PATH'] = f'{prefix}/{args.libdir}/pkgconfig'
    env['PYTHONPATH'] = f'{work}/site'
    printed = run(sys.executable, '-c', program, cwd=work, env=env)
    if printed.strip() != f'{version} CPU:0':
        sys.exit(f'the package that pip installed printed {printed}')
    printed = run(sys.executable, '-c', 'import importlib.metadata as m; '
                  'print(m.version("kiln-compiler"))', cwd=work, env=env)
    if printed.strip() != version:
        sys.exit(f'pip installed version {printed}')


def replace_mapped(args, prefix):
    library = os.path.realpath(glob.glob(f'{prefix}/{args.libdir}/libkiln.so')[0])
    inode = os.stat(library).st_ino
    holder = subprocess.Popen([sys.executable, '-c', HOLDER, library], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    install(args, prefix)
    if os.stat(library).st_ino == inode:
        sys.exit('installing again wrote into the mapped library')
    printed, _ = holder.communicate('')
    if holder.returncode != 0 or not printed.strip():
        sys.exit('a process that had the library mapped did not survive a new installation')


def main():
    parser = argparse.ArgumentParser()
    for name in ('source', 'build', 'cmake', 'cc', 'libdir', 'generator'):
        parser.add_argument('--' + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        for name, text in (('outside.c', PROGRAM), ('ahead.c', AHEAD), ('twice.hlo', TWICE)):
            with open(f'{work}/{name}', 'w') as f:
                f.write(text)
        install(args, '/usr', destdir=f'{work}/stage')
        check_tree(f'{work}/stage/usr', args.libdir)
        os.rename(f'{work}/stage/usr', f'{work}/moved')
        prefix = f'{work}/moved'
        version = use_pkg_config(args, prefix, work)
        use_find_package(args, prefix, work, version)
        use_python(args, prefix, work, version)
        replace_mapped(args, prefix)
    print(f'Kiln {version}: installed, used and replaced')
    return 0


if __name__ == '__main__':
    sys.exit(main())
