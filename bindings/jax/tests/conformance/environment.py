#!/usr/bin/python3
"""usage: environment.py FOLDER PAGE|jax==VERSION

Makes a virtual environment with that version of JAX, or the one that PAGE names, and with what JAX's
tests import, from the Python registry that pip is configured with, unless FOLDER holds one already.
Without the registry it fails and leaves nothing.
"""

import pathlib
import re
import shutil
import subprocess
import sys

PACKAGES = ['absl-py', 'hypothesis', 'portpicker', 'pytest', 'scipy']


def main():
    folder = pathlib.Path(sys.argv[1]).absolute()
    named = sys.argv[2]
    if not named.startswith('jax=='):
        named = pathlib.Path(named).read_text(encoding='utf-8')
    version = re.search(r'\bjax==([\d.]*\d)', named).group(1)
    ready = folder / f'has-jax-{version}'
    if ready.exists():
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    print(f'Installing JAX {version} and pytest into {folder}', flush=True)
    try:
        for command in ([sys.executable, '-m', 'venv', folder],
                        [folder / 'bin' / 'python', '-m', 'pip', 'install', '--quiet',
                         '--no-cache-dir', f'jax=={version}', *PACKAGES]):
            subprocess.run([str(c) for c in command], check=True)
        ready.touch()
        return 0
    except (subprocess.CalledProcessError, OSError) as error:
        print(f'{error}\nIs a Python registry reachable (pip download jax=={version}), and is '
              f'Python {sys.version.split()[0]} new enough for it?', file=sys.stderr)
    finally:
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
    return 1


if __name__ == '__main__':
    sys.exit(main())
