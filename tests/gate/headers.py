#!/usr/bin/python3
"""usage: headers.py --include DIR --cc CC --cxx CXX

Every public header compiles on its own, in any order and twice, as C99 and as C++17, without a
warning.
"""

import argparse
import os
import subprocess
import sys
import tempfile

WARNINGS = ['-Wall', '-Wextra', '-pedantic', '-Werror']


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--include', required=True)
    parser.add_argument('--cc', required=True)
    parser.add_argument('--cxx', required=True)
    args = parser.parse_args()
    headers = sorted('kiln/' + h for h in os.listdir(f'{args.include}/kiln') if h.endswith('.h'))
    if 'kiln/kiln.h' not in headers:
        print('no kiln/kiln.h')
        return 1
    with open(f'{args.include}/kiln/kiln.h') as f:
        umbrella = f.read()
    # Of another library.
    apart = ('kiln/kiln.h', 'kiln/aot.h')
    failed = [h for h in headers if h not in apart and f'#include "{h}"' not in umbrella]
    for header in failed:
        print(f'kiln/kiln.h does not include {header}')
    with tempfile.TemporaryDirectory() as folder:
        for suffix, compiler, standard in (('c', args.cc, 'c99'), ('cc', args.cxx, 'c++17')):
            for included in [[h, h] for h in headers] + [headers, headers[::-1]]:
                source = f'{folder}/use.{suffix}'
                with open(source, 'w') as f:
                    f.write(''.join(f'#include "{h}"\n' for h in included))
                    f.write('int main(void) { return 0; }\n')
                result = subprocess.run([compiler, f'-std={standard}', *WARNINGS, '-fsyntax-only',
                                         f'-I{args.include}', source])
                if result.returncode != 0:
                    failed.append(f'{standard}: {" ".join(included)}')
                    print(failed[-1])
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
