#!/usr/bin/python3
"""usage: wheel.py PLUGIN HEADER FOLDER

Writes kiln_jax-VERSION-py3-none-manylinux_N_M_x86_64.whl into FOLDER and prints its path: the package
jax_plugins.kiln with libkiln_pjrt.so (PLUGIN) and the libkiln.so.N beside it, stripped. VERSION is
the one of HEADER (kiln/version.h); N.M is the oldest glibc that has what the libraries call. Needs
the standard library, readelf and strip; equal files make equal wheels.
"""

import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
METADATA = '''Metadata-Version: 2.1
Name: kiln-jax
Version: {version}
Summary: Kiln as a platform of JAX
License: Apache-2.0
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.9
Requires-Dist: jaxlib
Description-Content-Type: text/markdown

`JAX_PLATFORMS=kiln,cpu python program.py` runs a JAX program on Kiln, a tensor compiler in one shared
library. The package has the plugin and the library; it needs nothing else but JAX.
'''
WHEEL = '''Wheel-Version: 1.0
Generator: kiln
Root-Is-Purelib: false
Tag: {tag}
'''
ENTRY_POINTS = '''[jax_plugins]
kiln = jax_plugins.kiln
'''


def read(*command):
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def version_of(header):
    numbers = re.findall(r'^#define KILN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$',
                         header.read_text(encoding='utf-8'), re.MULTILINE)
    return '.'.join(numbers)


def libraries_of(plugin):
    """The plugin, and the libkiln.so.N that it loads from its own folder."""
    dynamic = read('readelf', '-dW', plugin)
    if '[$ORIGIN]' not in dynamic:
        sys.exit(f'{plugin} does not look for libkiln.so in its own folder')
    needed = re.search(r'\[(libkiln\.so\.\d+)\]', dynamic).group(1)
    return {plugin.name: plugin, needed: plugin.parent / needed}


def tag_of(paths):
    versions = [tuple(map(int, v.split('.'))) for path in paths for v in
                re.findall(r'@GLIBC_(\d+\.\d+)', read('readelf', '--dyn-syms', '-W', path))]
    return 'py3-none-manylinux_{}_{}_x86_64'.format(*max(versions))


class Wheel:
    """A zip file whose last member lists the others with their digests."""

    def __init__(self, path, record):
        self.zip = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED)
        self.record, self.rows = record, []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name)  # of 1980: a wheel's bytes do not depend on the clock
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        self.rows.append(f'{name},sha256={digest},{len(data)}\n')

    def close(self):
        self.rows.append(f'{self.record},,\n')
        self.zip.writestr(zipfile.ZipInfo(self.record), ''.join(self.rows))
        self.zip.close()


def stripped(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = f'{folder}/{path.name}'
        shutil.copyfile(path, copy)
        read('strip', copy)
        return pathlib.Path(copy).read_bytes()


def main():
    plugin, header, folder = (pathlib.Path(a).absolute() for a in sys.argv[1:])
    version, libraries = version_of(header), libraries_of(plugin)
    tag = tag_of(libraries.values())
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f'kiln_jax-{version}-{tag}.whl', f'kiln_jax-{version}.dist-info'
    partial = path.with_suffix('.partial')
    wheel = Wheel(partial, f'{info}/RECORD')
    for source in sorted((HERE / 'jax_plugins' / 'kiln').glob('*.py')):
        wheel.add(f'jax_plugins/kiln/{source.name}', source.read_bytes())
    for name, library in libraries.items():
        wheel.add(f'jax_plugins/kiln/{name}', stripped(library), 0o755)
    for name, text in (('METADATA', METADATA), ('WHEEL', WHEEL), ('entry_points.txt', ENTRY_POINTS)):
        wheel.add(f'{info}/{name}', text.format(version=version, tag=tag).encode())
    wheel.add(f'{info}/LICENSE', (HERE.parents[1] / 'LICENSE').read_bytes())
    wheel.close()
    partial.rename(path)
    print(path)
    return 0


if __name__ == '__main__':
    sys.exit(main())
