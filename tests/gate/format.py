#!/usr/bin/python3
"""usage: format.py [--fix] REPOSITORY

The sources are formatted as .clang-format says. Releases of clang-format differ in details; the one
that decides is 14, Debian 12's. Exit code 77 where it is not installed.
"""

import os
import re
import shutil
import subprocess
import sys

VERSION = '14'


def clang_format():
    for name in (f'clang-format-{VERSION}', 'clang-format'):
        path = shutil.which(name)
        if path:
            text = subprocess.run([path, '--version'], stdout=subprocess.PIPE, text=True).stdout
            if re.search(rf'version {VERSION}\.', text):
                return path
    return None


def sources(root):
    for top in ('include', 'src', 'tests', 'docs/examples', 'bindings'):
        for folder, _, names in os.walk(f'{root}/{top}'):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(('.h', '.c', '.cc')):
                    with open(path) as f:
                        head = f.read(400)
                    if 'enerated by' not in head:
                        yield path


def main():
    arguments = [a for a in sys.argv[1:] if a != '--fix']
    tool = clang_format()
    if tool is None:
        print(f'clang-format {VERSION} is not installed')
        return 77
    files = list(sources(os.path.abspath(arguments[0])))
    if '--fix' in sys.argv:
        return subprocess.run([tool, '-i', *files]).returncode
    result = subprocess.run([tool, '--dry-run', '-Werror', '--ferror-limit=1', *files])
    if result.returncode == 0:
        print(f'{len(files)} files: formatted')
    else:
        print('`make format` mends this')
    return result.returncode


if __name__ == '__main__':
    sys.exit(main())
