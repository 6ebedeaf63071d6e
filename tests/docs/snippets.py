#!/usr/bin/python3
"""usage: snippets.py --cc CC --include DIR --lib DIR PAGE -- FLAGS...

Compiles and runs the C blocks of a page of the manual. A block ```c holds a whole program, with a
main; it must compile as C99 without a warning and return 0. A block ```c fragment shows a piece: it
is compiled as the body of a function of its own. When the block after a program is ```text output,
the program must print exactly that.
"""

import argparse
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r'^```([^\n]*)\n(.*?)^```\s*$', re.MULTILINE | re.DOTALL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--cc', required=True)
    parser.add_argument('--include', required=True)
    parser.add_argument('--lib', required=True)
    parser.add_argument('page')
    parser.add_argument('flags', nargs='*')
    args = parser.parse_args()
    with open(args.page) as f:
        text = f.read()
    blocks = [(m.group(1).strip(), m.group(2), text.count('\n', 0, m.start()) + 1)
              for m in BLOCK.finditer(text)]
    failed = 0
    seen = 0
    for i, (info, code, line) in enumerate(blocks):
        if info not in ('c', 'c fragment'):
            if info.split(' ')[0] == 'c':
                print(f'{args.page}:{line}: unknown kind of block: {info}')
                failed += 1
            continue
        seen += 1
        where = f'{args.page}:{line}'
        program = info == 'c'
        source = f'#line {line + 1} "{args.page}"\n{code}'
        if not program:
            source = f'#include <kiln/kiln.h>\n#include <stdio.h>\nvoid fragment(void) {{\n{source}\n}}\n'
        with tempfile.TemporaryDirectory() as folder:
            with open(f'{folder}/snippet.c', 'w') as f:
                f.write(source)
            command = [args.cc, '-std=c99', '-Wall', '-Wextra', '-Werror', *args.flags,
                       f'-I{args.include}', f'{folder}/snippet.c']
            command += ([f'-L{args.lib}', '-lkiln', '-lm', f'-Wl,-rpath,{args.lib}', '-o',
                         f'{folder}/snippet'] if program else
                        ['-Wno-unused-variable', '-Wno-unused-but-set-variable', '-fsyntax-only'])
            if subprocess.run(command).returncode != 0:
                print(f'{where}: does not compile')
                failed += 1
                continue
            if not program:
                continue
            result = subprocess.run([f'{folder}/snippet'], stdout=subprocess.PIPE, text=True,
                                    timeout=120, cwd=folder)
            if result.returncode != 0:
                print(f'{where}: returned {result.returncode}\n{result.stdout}')
                failed += 1
            elif i + 1 < len(blocks) and blocks[i + 1][0] == 'text output':
                if result.stdout != blocks[i + 1][1]:
                    print(f'{where}: printed\n{result.stdout}\nthe page says\n{blocks[i + 1][1]}')
                    failed += 1
    print(f'{args.page}: {seen} blocks, {failed} failed')
    return 1 if failed or not seen else 0


if __name__ == '__main__':
    sys.exit(main())
