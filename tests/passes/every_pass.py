#!/usr/bin/python3
"""Checks that every pass that kiln-opt lists has a test.

The tests of the pass `some-name` are some_name.hlo, or the .hlo files of the folder some_name/; one
of their RUN lines at least must ask for the pass by its name.
"""

import argparse
import pathlib
import re
import subprocess
import sys


def listed(kiln_opt):
    """The names of the passes: the list's first column, down to its first empty line."""
    text = subprocess.run([kiln_opt, '--list'], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    return [line.split()[0] for line in text.split('\n\n')[0].splitlines()]


def complaint(name, folder):
    """What is wrong with the tests of one pass, or None."""
    stem = name.replace('-', '_')
    files = [folder / f'{stem}.hlo'] if (folder / f'{stem}.hlo').exists() else []
    files += sorted((folder / stem).glob('*.hlo'))
    if not files:
        return f"pass '{name}' has no test: neither {stem}.hlo nor a file in {stem}/"
    asked = re.compile(r'^//\s*RUN:.*--passes=(\S*,)?' + re.escape(name) + r'(,|\s|$)',
                       re.MULTILINE)
    if not any(asked.search(f.read_text()) for f in files):
        return f"pass '{name}': no RUN line of its tests asks for it"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kiln-opt', required=True)
    parser.add_argument('--tests', type=pathlib.Path, required=True)
    args = parser.parse_args()
    names = listed(args.kiln_opt)
    if len(names) < 5:
        sys.exit(f'kiln-opt --list names {len(names)} passes only')
    if complaint('no-such-pass', args.tests) is None:
        sys.exit('a pass without a test is not found out')
    wrong = [c for c in (complaint(name, args.tests) for name in names) if c]
    print('\n'.join(wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
