#!/usr/bin/python3
"""usage: plant.py --source REPOSITORY [--files | --check | --clean LIBRARY | --out FOLDER]

Writes copies of the sources that bugs.py plants mistakes into, and bugs.inc, a row for each mistake.
--files lists those sources; --check only looks whether every place is there, once, and --clean
whether a library is free of all that.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True
from bugs import BUGS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--source', required=True)
    parser.add_argument('--files', action='store_true')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--clean')
    parser.add_argument('--out')
    args = parser.parse_args()
    files = list(dict.fromkeys(bug.file for bug in BUGS))
    if args.files:
        print(';'.join(files), end='')
        return 0
    if args.clean:
        with open(args.clean, 'rb') as f:
            if b'planted_bug' in f.read():
                print(f'{args.clean} has planted mistakes')
                return 1
        return 0
    texts = {}
    failed = False
    for file in files:
        with open(os.path.join(args.source, 'src', file)) as f:
            texts[file] = f.read()
    for number, bug in enumerate(BUGS, 1):
        found = texts[bug.file].count(bug.old)
        if found != 1:
            print(f'src/{bug.file}: the place of planted mistake {number} ("{bug.what}") is there '
                  f'{found} times, not once; mend tests/planted/bugs.py')
            failed = True
            continue
        chosen = f'(::kiln::testing::planted_bug == {number})'
        texts[bug.file] = texts[bug.file].replace(bug.old, bug.new.replace('PLANTED', chosen))
    if failed or args.check:
        return 1 if failed else 0
    for file, text in texts.items():
        path = os.path.join(args.out, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as f:
            f.write('namespace kiln::testing { extern int planted_bug; }\n#line 1\n' + text)
    with open(os.path.join(args.out, 'bugs.inc'), 'w') as f:
        for bug in BUGS:
            f.write('{"%s", "%s"},\n' % (bug.what.replace('"', '\\"'), bug.file))
    return 0


if __name__ == '__main__':
    sys.exit(main())
