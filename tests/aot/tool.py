#!/usr/bin/python3
"""usage: tool.py --aot KILN_AOT --include DIR --cc CC --cxx CXX

kiln-aot as its users see it: headers that compile without a warning, equal objects of equal programs,
objects for other machines, errors that say what is wrong, and nothing written after one.
"""

import argparse
import os
import struct
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
WARNINGS = ['-Wall', '-Wextra', '-pedantic', '-Werror']
EM_X86_64, EM_AARCH64 = 62, 183
args = None


class Tool(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def aot(self, *arguments):
        return subprocess.run([args.aot, *arguments], cwd=self.work, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)

    def make(self, *arguments):
        result = self.aot(*arguments)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, '', ''))

    def read(self, name):
        with open(f'{self.work}/{name}', 'rb') as f:
            return f.read()

    def fails(self, *arguments):
        before = sorted(os.listdir(self.work))
        result = self.aot(*arguments)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(sorted(os.listdir(self.work)), before)
        return result.stderr

    def test_names_of_files(self):
        self.make(f'{HERE}/axpy.hlo')
        self.assertEqual(sorted(os.listdir(self.work)), ['axpy.h', 'axpy.o'])
        self.make(f'{HERE}/axpy.hlo', '--name', 'other', '-o', 'a.o', '--header', 'b.h')
        self.assertEqual(sorted(os.listdir(self.work)), ['a.o', 'axpy.h', 'axpy.o', 'b.h'])
        self.assertIn(b'other_run(', self.read('b.h'))

    def test_headers(self):
        for program in ('axpy.hlo', 'spectrum.hlo', 'scale.mlir'):
            self.make(f'{HERE}/{program}', '--class', 'ns::Name', '-o', 'p.o')
            for compiler, standard, suffix in ((args.cc, 'c99', 'c'), (args.cxx, 'c++17', 'cc')):
                source = f'{self.work}/use.{suffix}'
                with open(source, 'w') as f:
                    f.write('#include "p.h"\n#include "p.h"\nint main(void) { return 0; }\n')
                result = subprocess.run([compiler, f'-std={standard}', *WARNINGS, '-fsyntax-only',
                                         f'-I{args.include}', source])
                self.assertEqual(result.returncode, 0, program)

    def test_equal_objects(self):
        for target in ('native', 'x86-64-v3'):
            self.make(f'{HERE}/sums.hlo', '--target', target, '-o', 'a.o')
            self.make(f'{HERE}/sums.hlo', '--target', target, '-o', 'b.o')
            self.assertEqual(self.read('a.o'), self.read('b.o'))

    def test_machines(self):
        def machine(name):
            return struct.unpack_from('<H', self.read(name), 18)[0]
        self.make(f'{HERE}/sums.hlo', '--target', 'znver4')
        self.assertEqual(machine('sums.o'), EM_X86_64)
        self.make(f'{HERE}/sums.hlo', '--target', 'aarch64')
        self.assertEqual(machine('sums.o'), EM_AARCH64)

    def test_errors(self):
        with open(f'{self.work}/bad.hlo', 'w') as f:
            f.write('HloModule bad\nENTRY e {\n  ROOT x = f32[2] frob()\n}\n')
        self.assertIn('line 3', self.fails('bad.hlo'))
        self.assertIn('cannot be read', self.fails('nothing.hlo'))
        self.assertIn('znver5', self.fails(f'{HERE}/axpy.hlo', '--target', 'znver9'))
        self.assertIn('no name in C', self.fails(f'{HERE}/axpy.hlo', '--name', '2x'))
        self.assertIn('no name of a class', self.fails(f'{HERE}/axpy.hlo', '--class', 'a::class'))
        self.assertIn('NAME=SIZE', self.fails(f'{HERE}/axpy.hlo', '--symbol', 'n'))
        self.fails(f'{HERE}/axpy.hlo', '--target', 'znver4', '--multi-version')
        self.fails(f'{HERE}/axpy.hlo', '-o', 'no/such/folder/a.o')
        self.fails()


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    for name in ('aot', 'include', 'cc', 'cxx'):
        parser.add_argument('--' + name, required=True)
    args = parser.parse_args()
    unittest.main(argv=['tool.py'])
