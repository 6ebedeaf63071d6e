#!/usr/bin/python3
"""usage: snippets.py --cc CC --include DIR --lib DIR PAGE -- FLAGS...

Compiles and runs the C blocks of a page of the manual, as C99 and without a warning:

- ```c            a whole program, with a main, which must return 0;
- ```c fragment   a piece that is only compiled, as the body of a function of its own;
- ```c start      includes and functions of the page's own program,
- ```c step       and a piece of its main. The steps of a page follow each other in one program.

When the block after a program or a step is ```text output, it must print exactly that.
"""

import argparse
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r'^```([^\n]*)\n(.*?)^```\s*$', re.MULTILINE | re.DOTALL)


# Printed between the steps of a page's program, so that each one's output can be told.
SEPARATOR = '\x1e'


class Page:
    """The blocks of a page, and what is wrong with them."""

    def __init__(self, args):
        self.args = args
        self.failed = 0
        with open(args.page) as f:
            text = f.read()
        self.blocks = [(m.group(1).strip(), m.group(2), text.count('\n', 0, m.start()) + 1)
                       for m in BLOCK.finditer(text)]

    def fail(self, line, what):
        print(f'{self.args.page}:{line}: {what}')
        self.failed += 1

    def located(self, code, line):
        return f'#line {line + 1} "{self.args.page}"\n{code}'

    def expected_after(self, i):
        """What the block must print, if the page says so."""
        if i + 1 < len(self.blocks) and self.blocks[i + 1][0] == 'text output':
            return self.blocks[i + 1][1]
        return None

    def build(self, folder, source, line, program):
        args = self.args
        with open(f'{folder}/snippet.c', 'w') as f:
            f.write(source)
        command = [args.cc, '-std=c99', '-Wall', '-Wextra', '-Werror', *args.flags,
                   f'-I{args.include}', f'{folder}/snippet.c']
        command += ([f'-L{args.lib}', '-lkiln', '-lm', f'-Wl,-rpath,{args.lib}', '-o',
                     f'{folder}/snippet'] if program else
                    ['-Wno-unused-variable', '-Wno-unused-but-set-variable', '-fsyntax-only'])
        if subprocess.run(command).returncode == 0:
            return True
        self.fail(line, 'does not compile')
        return False

    def run(self, source, line):
        """The output of a program, or None when it failed."""
        with tempfile.TemporaryDirectory() as folder:
            if not self.build(folder, source, line, program=True):
                return None
            result = subprocess.run([f'{folder}/snippet'], stdout=subprocess.PIPE, text=True,
                                    timeout=120, cwd=folder)
            if result.returncode == 0:
                return result.stdout
            self.fail(line, f'returned {result.returncode}\n{result.stdout}')
            return None

    def compare(self, i, printed):
        expected = self.expected_after(i)
        if expected is not None and printed != expected:
            self.fail(self.blocks[i][2], f'printed\n{printed}\nthe page says\n{expected}')

    def check_fragment(self, code, line):
        source = ('#include <kiln/kiln.h>\n#include <stdio.h>\nvoid fragment(void) {\n'
                  f'{self.located(code, line)}\n}}\n')
        with tempfile.TemporaryDirectory() as folder:
            self.build(folder, source, line, program=False)

    def check_steps(self):
        """The page's own program."""
        steps = [i for i, block in enumerate(self.blocks) if block[0] == 'c step']
        starts = [block for block in self.blocks if block[0] == 'c start']
        if not steps:
            if starts:
                self.fail(starts[0][2], 'starts a program that has no steps')
            return
        source = ''.join(self.located(code, line) for _, code, line in starts)
        source += '#include <stdio.h>\nint main(void) {\n'
        for i in steps:
            _, code, line = self.blocks[i]
            source += self.located(code, line) + f'putchar({ord(SEPARATOR)});\n'
        source += 'return 0;\n}\n'
        printed = self.run(source, self.blocks[steps[0]][2])
        if printed is None:
            return
        for i, piece in zip(steps, printed.split(SEPARATOR)):
            self.compare(i, piece)

    def check(self):
        seen = 0
        for i, (info, code, line) in enumerate(self.blocks):
            seen += info.split(' ')[0] == 'c'
            if info == 'c':
                printed = self.run(self.located(code, line), line)
                if printed is not None:
                    self.compare(i, printed)
            elif info == 'c fragment':
                self.check_fragment(code, line)
            elif info.split(' ')[0] == 'c' and info not in ('c start', 'c step'):
                self.fail(line, f'unknown kind of block: {info}')
        self.check_steps()
        print(f'{self.args.page}: {seen} blocks, {self.failed} failed')
        return 1 if self.failed or not seen else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--cc', required=True)
    parser.add_argument('--include', required=True)
    parser.add_argument('--lib', required=True)
    parser.add_argument('page')
    parser.add_argument('flags', nargs='*')
    return Page(parser.parse_args()).check()


if __name__ == '__main__':
    sys.exit(main())
