#!/usr/bin/python3
"""usage: layout.py REPOSITORY

Holds the house rules that a file listing can show: what stands at the top level, how long a source
file may be, and that no source file puts work off in a comment.
"""

import os
import re
import subprocess
import sys

TOP_LEVEL = {'CMakeLists.txt', 'LICENSE', 'Makefile', 'README.md', 'bindings', 'docs', 'include',
             'src', 'tests'}
MAX_LINES = 800
# Spelt in pieces, so that this file passes its own check.
PUT_OFF = re.compile(r'\b(TO' r'DO|FIX' r'ME|HA' r'CK|XX' r'X)\b')
SOURCE = re.compile(r'\.(cc|cpp|h|hpp|c|py|def|sh)$')


def tracked(root):
    """Paths in version control, or all paths where there is none (an unpacked archive)."""
    listing = subprocess.run(['git', '-C', root, 'ls-files', '--cached', '--others',
                              '--exclude-standard'], capture_output=True, text=True)
    if listing.returncode == 0:
        return [p for p in listing.stdout.split('\n') if p and os.path.exists(f'{root}/{p}')]
    paths = []
    for folder, folders, files in os.walk(root):
        if folder == root:
            folders[:] = [f for f in folders if f != 'build']
        paths += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return paths


def main():
    root = os.path.abspath(sys.argv[1])
    errors = []
    paths = tracked(root)
    for entry in sorted({p.split('/')[0] for p in paths}):
        if not entry.startswith('.') and entry not in TOP_LEVEL:
            errors.append(f'{entry}: the top level holds {", ".join(sorted(TOP_LEVEL))} only')
    for path in paths:
        if not SOURCE.search(path):
            continue
        with open(f'{root}/{path}', errors='replace') as f:
            lines = f.read().split('\n')
        generated = any('enerated' in line for line in lines[:5])
        if len(lines) > MAX_LINES and not generated and not path.endswith('.def'):
            errors.append(f'{path}: {len(lines)} lines; the limit is {MAX_LINES}')
        for number, line in enumerate(lines, 1):
            match = PUT_OFF.search(line)
            if match:
                errors.append(f'{path}:{number}: {match.group(1)}')
    print('\n'.join(errors) if errors else f'{len(paths)} files: layout as agreed')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
