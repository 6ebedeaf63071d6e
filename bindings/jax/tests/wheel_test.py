"""usage: wheel_test.py PLUGIN HEADER

The wheel, installed by pip into a fresh environment that has JAX, runs a program on Kiln. Exit code
77 where this Python has no JAX or no pip.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = '''
import importlib.metadata, os, sys
import jax, jax.numpy as jnp, jax_plugins.kiln as plugin
print(jax.default_backend(), float(jax.jit(lambda x: (x @ x).sum())(jnp.full((4, 4), 2.0))))
print(os.path.relpath(plugin.library_path(), sys.prefix).split(os.sep)[0])
with open('/proc/self/maps') as maps:
    print(*sorted({os.path.basename(line.split()[-1]) for line in maps if 'libkiln' in line}))
print(*[point.value for point in importlib.metadata.entry_points(group='jax_plugins')])
'''
WANTED = '''kiln 256.0
lib
libkiln.so.0 libkiln_pjrt.so
jax_plugins.kiln
'''


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        sys.exit(f'{command}: {done.returncode}\n{done.stdout}')
    return done.stdout


def main():
    missing = [m for m in ('jaxlib', 'pip') if importlib.util.find_spec(m) is None]
    if missing:
        print(f'skipped: {sys.executable} has no {" and no ".join(missing)}')
        return 77
    maker = pathlib.Path(__file__).resolve().parents[1] / 'wheel.py'
    packages = pathlib.Path(importlib.util.find_spec('jaxlib').origin).parents[1]
    env = {name: value for name, value in os.environ.items()
           if name not in ('KILN_PJRT_LIBRARY', 'PYTHONPATH')}
    with tempfile.TemporaryDirectory() as work:
        wheel, again = (run('/usr/bin/python3', maker, *sys.argv[1:], f'{work}/{folder}').strip()
                        for folder in ('first', 'second'))
        if pathlib.Path(wheel).read_bytes() != pathlib.Path(again).read_bytes():
            sys.exit('a second wheel of the same files differs')
        run(sys.executable, '-m', 'venv', f'{work}/venv')
        site, = pathlib.Path(work).glob('venv/lib/python3*/site-packages')
        (site / 'jax.pth').write_text(f'{packages}\n', encoding='utf-8')  # in place of a download
        python = f'{work}/venv/bin/python'
        run(python, '-m', 'pip', 'install', '--quiet', '--no-index', wheel, env=env)
        printed = run(python, '-c', PROGRAM, cwd=work, env={**env, 'JAX_PLATFORMS': 'kiln,cpu'})
        if printed != WANTED:
            sys.exit(f'the program printed {printed}')
        run(python, '-m', 'pip', 'uninstall', '--quiet', '--yes', 'kiln-jax', env=env)
        if list(site.glob('jax_plugins/kiln/lib*')):
            sys.exit('libraries were left behind')
    return 0


if __name__ == '__main__':
    sys.exit(main())
