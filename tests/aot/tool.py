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
WARNINGS = ['-Wall', '-Wextra', '-Wconversion', '-Wundef', '-pedantic', '-Werror']
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

    def compiles(self, text, compiler, suffix, *options):
        source = f'{self.work}/use.{suffix}'
        with open(source, 'w') as f:
            f.write(text)
        result = subprocess.run([compiler, *options, *WARNINGS, '-fsyntax-only',
                                 f'-I{args.include}', source])
        self.assertEqual(result.returncode, 0, options)

    def test_headers(self):
        for program in ('axpy.hlo', 'spectrum.hlo', 'scale.mlir', 'names.hlo'):
            self.make(f'{HERE}/{program}', '--class', 'kiln::ns::Name', '-o', 'p.o')
            text = '#include "p.h"\n#include "p.h"\nint main(void) { return 0; }\n'
            for standard in ('c99', 'c11', 'gnu17'):
                self.compiles(text, args.cc, 'c', f'-std={standard}')
            for standard in ('c++11', 'c++17', 'gnu++20'):
                self.compiles(text, args.cxx, 'cc', f'-std={standard}', '-Wshadow',
                              '-Wold-style-cast', '-fno-exceptions', '-fno-rtti')

    # Names that differ by case alone; and one that would end the header's comment.
    def test_headers_together(self):
        with open(f'{self.work}/net.mlir', 'w') as f:
            f.write('module @"a*/b/*c*/*/" { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> '
                    '{ return %a : tensor<2xf32> } }')
        self.make('net.mlir')
        self.make('net.mlir', '--name', 'Net', '--multi-version')
        self.assertEqual(self.read('Net.h').count(b' * For: '), 3)
        self.compiles('#include "net.h"\n#include "Net.h"\n'
                      'int use(void) { return net_program.threads + Net_program.threads; }\n',
                      args.cc, 'c', '-std=c99')

    def test_another_version(self):
        self.make(f'{HERE}/axpy.hlo')
        os.mkdir(f'{self.work}/kiln')
        with open(f'{args.include}/kiln/aot.h') as f:
            text = f.read()
        changed = text.replace('#define KILN_AOT_VERSION ', '#define KILN_AOT_VERSION 7')
        self.assertNotEqual(changed, text)
        with open(f'{self.work}/kiln/aot.h', 'w') as f:
            f.write(changed)
        result = subprocess.run([args.cc, '-fsyntax-only', f'-I{self.work}', '-x', 'c',
                                 f'{self.work}/axpy.h'], stderr=subprocess.PIPE, text=True)
        self.assertIn('another version', result.stderr)
        self.assertNotEqual(result.returncode, 0)

    # The same object from text, from standard input, and from bytecode.
    def test_inputs(self):
        with open(f'{HERE}/axpy.hlo') as f:
            result = subprocess.run([args.aot, '-', '--name', 'axpy'], cwd=self.work, stdin=f)
        self.assertEqual(result.returncode, 0)
        piped = self.read('axpy.o')
        self.make(f'{HERE}/axpy.hlo')
        self.assertEqual(self.read('axpy.o'), piped)
        self.make(f'{HERE}/portable.mlirbc')
        self.assertIn(b'const float* factor,', self.read('portable.h'))

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
        self.assertIn('kiln-aot: UNIMPLEMENTED: bad.hlo:3:19: ', self.fails('bad.hlo'))
        with open(f'{self.work}/elided.hlo', 'w') as f:
            f.write('ENTRY e { ROOT c = f32[2] constant({...}) }')
        self.assertIn('which the program needs', self.fails('elided.hlo'))
        self.assertIn('cannot read nothing.hlo', self.fails('nothing.hlo'))
        self.assertIn('/ is a folder', self.fails('/'))
        self.assertIn('--name is needed', self.fails('-'))
        self.assertIn('znver5', self.fails(f'{HERE}/axpy.hlo', '--target', 'znver9'))
        self.assertIn('no name in C', self.fails(f'{HERE}/axpy.hlo', '--name', '2x'))
        self.assertIn('no name of a class', self.fails(f'{HERE}/axpy.hlo', '--class', 'a::class'))
        self.assertIn('NAME=SIZE', self.fails(f'{HERE}/axpy.hlo', '--symbol', 'n'))
        self.assertIn('--entry is for StableHLO', self.fails(f'{HERE}/axpy.hlo', '--entry', 'main'))
        self.assertIn('excludes', self.fails(f'{HERE}/axpy.hlo', '--target', 'znver4',
                                             '--multi-version'))
        self.assertIn('--threads', self.fails(f'{HERE}/axpy.hlo', '--threads', '-1'))
        self.assertIn('input is required', self.fails())

    def test_names_that_are_taken(self):
        self.assertIn("'kiln_aot' is no name", self.fails(f'{HERE}/axpy.hlo', '--name', 'kiln_aot'))
        self.assertIn('as one of its members is',
                      self.fails(f'{HERE}/axpy.hlo', '--name', 'program', '--cxx'))
        self.assertIn('as one of its members is',
                      self.fails(f'{HERE}/axpy.hlo', '--class', 'a::arg0_data'))
        self.assertIn("'axpy_run' is another name",
                      self.fails(f'{HERE}/axpy.hlo', '--namespace', 'axpy_run'))
        for target in ('memcpy', 'main', 'axpy.run', 'axpy_program', 'kiln_aot_run'):
            with open(f'{self.work}/calls.hlo', 'w') as f:
                f.write('HloModule calls\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] '
                        f'custom-call(x), custom_call_target="{target}"\n}}\n')
            message = self.fails('calls.hlo', '--name', 'axpy')
            self.assertIn("custom-call 'y' of " + target, message)

    def test_outputs(self):
        self.assertIn('no/such/folder/a.o: ',
                      self.fails(f'{HERE}/axpy.hlo', '-o', 'no/such/folder/a.o'))
        self.assertIn('no/such/folder/a.h: ',
                      self.fails(f'{HERE}/axpy.hlo', '--header', 'no/such/folder/a.h'))
        self.assertIn('both to be a.h', self.fails(f'{HERE}/axpy.hlo', '-o', 'a.h'))
        with open(f'{HERE}/axpy.hlo', 'rb') as f:
            text = f.read()
        with open(f'{self.work}/own.hlo', 'wb') as f:
            f.write(text)
        self.assertIn('would be overwritten: ./own.hlo', self.fails('own.hlo', '-o', './own.hlo'))
        self.assertEqual(self.read('own.hlo'), text)
        # A failure leaves what was there.
        self.make('own.hlo')
        before = self.read('own.o')
        os.mkdir(f'{self.work}/folder.h')
        self.assertIn('folder.h: ', self.fails('own.hlo', '--target', 'x86-64-v2', '--header',
                                               'folder.h'))
        self.assertEqual(self.read('own.o'), before)

    def test_sizes(self):
        with open(f'{self.work}/sized.mlir', 'w') as f:
            f.write('func.func @pair(%a: tensor<?x2xf32>, %b: tensor<?x2xf32>) -> tensor<?x2xf32> {\n'
                    '%0 = stablehlo.add %a, %b : tensor<?x2xf32>\n'
                    'return %0 : tensor<?x2xf32> }')
        self.assertIn('sized.mlir:1:', self.fails('sized.mlir'))
        self.assertIn('sized.mlir', self.fails('sized.mlir', '--argument', 'f32[5,2]'))
        self.assertIn('--argument f32[5,x] is no shape',
                      self.fails('sized.mlir', '--argument', 'f32[5,x]'))
        self.assertIn('--symbol is for HLO', self.fails('sized.mlir', '--symbol', 'n=5'))
        self.make('sized.mlir', '--argument', 'f32[5,2]', '--argument', 'f32[5,2]')
        self.assertIn(b'SIZED_result_DIM0 5', self.read('sized.h'))
        with open(f'{self.work}/sized.hlo', 'w') as f:
            f.write('HloModule sized\nENTRY e {\n  x = f32[n,2] parameter(0)\n'
                    '  ROOT y = f32[n,2] negate(x)\n}\n')
        self.assertIn('--symbol n=SIZE', self.fails('sized.hlo'))
        self.assertIn('no such symbol in the program, but n',
                      self.fails('sized.hlo', '--symbol', 'm=5'))
        self.assertIn('has a size already',
                      self.fails('sized.hlo', '--symbol', 'n=5', '--symbol', 'n=6'))
        self.make('sized.hlo', '--symbol', 'n=7')
        self.assertIn(b'SIZED_x_DIM0 7', self.read('sized.h'))
        self.make('sized.hlo', '--argument', 'f32[8,2]')
        self.assertIn(b'SIZED_x_DIM0 8', self.read('sized.h'))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    for name in ('aot', 'include', 'cc', 'cxx'):
        parser.add_argument('--' + name, required=True)
    args = parser.parse_args()
    unittest.main(argv=['tool.py'])
