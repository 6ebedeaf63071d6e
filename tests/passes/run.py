#!/usr/bin/python3
"""Runs one pass test.

A test is a file with lines `// RUN: command`. In a command, %s is the file itself and %t a
temporary file of the test's own; kiln-opt, kiln-run, FileCheck and not are on the PATH. A line that
ends in a backslash goes on in the next `// RUN:` line. Commands run under `bash -o pipefail`, in
order, and each must succeed.

    // RUN: kiln-opt --passes=dce %s | FileCheck %s

A file that holds the line `// BLESS: prefix` has its whole output checked, line by line, under that
FileCheck prefix; `run.py --bless` rewrites those checks from what the command prints today. Read
the difference before you commit it.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile


def run_lines(text):
    """The commands of a test, continuation lines joined."""
    commands = []
    continued = False
    for match in re.finditer(r'^\s*//\s*RUN:\s*(.*?)\s*$', text, re.MULTILINE):
        line = match.group(1)
        if continued:
            commands[-1] = commands[-1] + ' ' + line
        else:
            commands.append(line)
        continued = line.endswith('\\')
        if continued:
            commands[-1] = commands[-1][:-1].rstrip()
    return commands


def bless(path, commands, env):
    """Replaces the checks of every blessed prefix with the output of its command."""
    with open(path) as f:
        lines = f.read().split('\n')
    prefixes = [m.group(1) for m in (re.match(r'\s*//\s*BLESS:\s*(\S+)', l) for l in lines) if m]
    for prefix in prefixes:
        found = [c for c in commands if '|' in c and 'FileCheck' in c.split('|')[-1] and
                 (re.search(r'--check-prefix=' + prefix + r'\b', c) or
                  (prefix == 'CHECK' and '--check-prefix' not in c))]
        if len(found) != 1:
            sys.exit(f'{path}: {len(found)} RUN lines check the prefix {prefix}, not one')
        command = found[0].rsplit('|', 1)[0]
        output = subprocess.run(['bash', '-o', 'pipefail', '-c', command], env=env, check=True,
                                stdout=subprocess.PIPE, text=True).stdout
        checks = []
        for line in output.rstrip('\n').split('\n'):
            if not line.strip():
                # FileCheck takes no -EMPTY before the first check.
                checks += [f'// {prefix}-EMPTY:'] if checks else []
                continue
            # Double brackets and braces have a meaning for FileCheck.
            line = re.sub(r'\[\[|\{\{', lambda m: '{{' + re.escape(m.group(0)) + '}}', line)
            checks.append(f'// {prefix}{"-NEXT" if checks else ""}: {line}')
        old = re.compile(r'\s*//\s*' + prefix + r'(-NEXT|-EMPTY|-SAME|-NOT|-DAG|-LABEL)?:')
        at = next(i for i, l in enumerate(lines) if re.match(rf'\s*//\s*BLESS:\s*{prefix}\b', l))
        kept = [l for l in lines[at + 1:] if not old.match(l)]
        lines = [l for l in lines[:at + 1] if not old.match(l)] + checks + kept
    with open(path, 'w') as f:
        f.write('\n'.join(lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--tools', action='append', default=[], help='folders put on the PATH')
    parser.add_argument('--bless', action='store_true', help='rewrite the checks')
    parser.add_argument('files', nargs='+')
    args = parser.parse_args()
    env = dict(os.environ, PATH=os.pathsep.join(args.tools + [os.environ.get('PATH', '')]))
    failed = False
    for path in args.files:
        with open(path) as f:
            commands = run_lines(f.read())
        if not commands:
            sys.exit(f'{path}: no RUN line')
        with tempfile.TemporaryDirectory() as folder:
            commands = [c.replace('%s', os.path.abspath(path)).replace('%t', folder + '/t')
                        for c in commands]
            if args.bless:
                bless(path, commands, env)
                continue
            for command in commands:
                result = subprocess.run(['bash', '-o', 'pipefail', '-c', command], env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
                if result.returncode != 0:
                    print(f'{path}: failed with {result.returncode}: {command}\n{result.stdout}')
                    failed = True
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
