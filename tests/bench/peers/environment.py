#!/usr/bin/python3
"""usage: environment.py FOLDER torch|jax

Makes a virtual environment with NumPy, PyTorch for the CPU and ONNX Runtime, or with JAX and libraries
above it, from the Python registry that pip is configured with, unless FOLDER holds one of the same
packages already. Without the registry it fails and leaves nothing.

A PyTorch that was built for CUDA too does without NVIDIA's libraries, gigabytes that nothing on the
CPU calls: stand-ins take their places, whose functions all return cudaErrorNoDevice.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

# What PyTorch imports. It names more, which the benchmarks have no use for: Triton, CUDA.
PACKAGES = ['numpy', 'setuptools>=77', 'filelock', 'typing-extensions>=4.13', 'sympy>=1.13.3',
            'networkx', 'jinja2', 'fsspec', 'onnxruntime', 'onnx']
# The last transformers with models for Flax is 4.57.
JAX_PACKAGES = ['jax==0.10.2', 'flax', 'optax', 'diffrax', 'numpyro', 'transformers<5']
# A file that names the packages, once all are there.
READY = 'ready'
# MKL, which PyTorch contains, takes AVX-512 on Intel's processors alone; a library before it says so.
INTEL = 'intel.so'


def run(*command, check=True):
    return subprocess.run([str(c) for c in command], check=check, capture_output=True, text=True)


def cuda_symbols(libraries):
    """The libraries of NVIDIA's that are missing, and the functions wanted of them by version."""
    needed, defined, wanted = set(), set(), set()
    for library in libraries:
        for line in run('readelf', '-dW', library).stdout.splitlines():
            if '(NEEDED)' in line:
                needed.add(line.split('[')[1].rstrip(']'))
        for line in run('nm', '-D', library).stdout.splitlines():
            kind, name = line.split()[-2:]
            if kind in 'Uwv':
                wanted.add(name)
            else:
                defined.add(name.split('@')[0])
    names = {library.name for library in libraries}
    missing = sorted(n for n in needed - names if re.match(r'lib(cu|nv|nccl)', n))
    versions = collections.defaultdict(list)
    for symbol in sorted(wanted):
        name, _, version = symbol.partition('@')
        if name not in defined and re.match(r'(cu|nv|nccl|__cu|__nv)', name):
            versions[version or 'UNVERSIONED'].append(name)
    return missing, versions


def stand_in(folder):
    """Puts one library into the places of all that are missing of NVIDIA's."""
    libraries = [p for p in folder.iterdir() if '.so' in p.name and not p.is_symlink()]
    missing, versions = cuda_symbols(libraries)
    if not missing:
        return
    source, script = folder / 'stand_in.s', folder / 'stand_in.map'
    functions = (f'.globl {name}\n.type {name}, @function\n{name}:\n'
                 for names in versions.values() for name in names)
    # cudaErrorNoDevice is 100; cuDNN, cuBLAS and the others take any number but 0 for a failure.
    source.write_text('.text\n' + ''.join(functions) + 'mov $100, %eax\nret\n')
    script.write_text(''.join(f'{version} {{ {"; ".join(names)}; }};\n'
                              for version, names in versions.items()))
    run('gcc', '-shared', '-nostdlib', '-o', folder / missing[0], source,
        f'-Wl,--version-script={script}')
    for name in missing[1:]:
        (folder / name).symlink_to(missing[0])


def answer_for_processor(file):
    """A library by which MKL takes any processor for Intel's."""
    subprocess.run(['gcc', '-shared', '-fPIC', '-x', 'c', '-', '-o', str(file)], check=True, text=True,
                   capture_output=True, input='int mkl_serv_intel_cpu_true(void) { return 1; }')


def imports_torch(python):
    return run(python, '-c', 'import torch', check=False).returncode == 0


def make(folder, peer):
    run('/usr/bin/python3', '-m', 'venv', folder)
    python = folder / 'bin' / 'python'
    pip = [python, '-m', 'pip', 'install', '--quiet', '--no-cache-dir']
    if peer == 'jax':
        print('Installing JAX, Flax and transformers (a gigabyte) into', folder, flush=True)
        run(*pip, *JAX_PACKAGES)
        return
    print('Installing NumPy, PyTorch and ONNX Runtime (half a gigabyte) into', folder, flush=True)
    run(*pip, *PACKAGES)
    run(*pip, '--no-deps', 'torch')
    packages = pathlib.Path(run(python, '-c', 'import sysconfig; '
                                'print(sysconfig.get_path("purelib"))').stdout.strip())
    if not imports_torch(python):
        stand_in(packages / 'torch' / 'lib')
    if not imports_torch(python):
        # With all that it names.
        shutil.rmtree(packages / 'torch')
        run(*pip, '--force-reinstall', 'torch')
        run(python, '-c', 'import torch')
    answer_for_processor(folder / INTEL)


def main():
    folder, peer = pathlib.Path(sys.argv[1]).absolute(), sys.argv[2]
    ready, packages = folder / READY, '\n'.join(JAX_PACKAGES if peer == 'jax' else PACKAGES)
    if ready.exists() and ready.read_text(encoding='ascii') == packages:
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    try:
        make(folder, peer)
        ready.write_text(packages, encoding='ascii')
        return 0
    except (subprocess.CalledProcessError, OSError) as error:
        said = (getattr(error, 'stderr', None) or str(error)).strip().splitlines()
        print('The peers cannot be installed: is a Python registry reachable (pip download numpy)?',
              *said[-3:], sep='\n  ', file=sys.stderr)
    finally:
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
    return 1


if __name__ == '__main__':
    sys.exit(main())
