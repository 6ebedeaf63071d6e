#!/usr/bin/python3
"""usage: hlo_forms.py KILN_RUN KILN_OPT

The modules of hlo_forms.hlo are read, and printed and read again, and run on the CPU: both agree with
the evaluator.
"""

import os
import subprocess
import sys
import tempfile

FORMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'hlo_forms.hlo')


def modules():
    """(name, text) of each."""
    with open(FORMS, encoding='utf-8') as f:
        functions, *pieces = f.read().split('// -----\n')
    for piece in pieces:
        name, _, text = piece.removeprefix('// ').partition('\n')
        yield name, text if text.startswith('HloModule') else functions + text


def main():
    run, opt = sys.argv[1:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, text in modules():
            path = os.path.join(folder, f'{name}.hlo')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
            files.append(path)
            done = subprocess.run([opt, path], capture_output=True, text=True)
            if done.returncode != 0:
                failed += 1
                print(f'{name}: {done.stderr}')
                continue
            path = os.path.join(folder, f'{name}.printed.hlo')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(done.stdout)
            files.append(path)
        done = subprocess.run([run, '--platform=cpu', *files], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    print('\n'.join(line for line in lines if not line.startswith(('PASS', '  '))))
    print(done.stderr)
    sys.exit(1 if failed or done.returncode != 0 else 0)


if __name__ == '__main__':
    main()
