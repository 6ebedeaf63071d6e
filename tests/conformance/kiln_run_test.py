#!/usr/bin/python3
"""usage: kiln_run_test.py KILN_RUN

What kiln-run --check says of files that pass, fail, are skipped, hang, or end their process.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = sys.argv.pop(1)

PASS = '''func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.add %a, %a : tensor<2xi32>
  check.expect_eq_const %b, dense<[2, 4]> : tensor<2xi32>
  return
}
'''
FAIL = PASS.replace('[2, 4]', '[2, 5]')
BOUNDED = '''func.func @main() {
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %b = stablehlo.set_dimension_size %x, %n, dim = 0
      : (tensor<5xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<5>>
  %y = stablehlo.add %b, %b : tensor<?xf32, #stablehlo.bounds<5>>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?xf32, #stablehlo.bounds<5>>, tensor<f32>) -> tensor<f32>
  %m = stablehlo.get_dimension_size %y, dim = 0
      : (tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<i32>
  check.expect_eq_const %s, dense<12.0> : tensor<f32>
  check.expect_eq_const %m, dense<3> : tensor<i32>
  %e = stablehlo.constant dense<[2.0, 4.0, 6.0]> : tensor<3xf32>
  check.expect_eq %y, %e : tensor<?xf32, #stablehlo.bounds<5>>, tensor<3xf32>
  check.expect_eq %y, %y : tensor<?xf32, #stablehlo.bounds<5>>, tensor<?xf32, #stablehlo.bounds<5>>
  return
}
'''
HANG = '''func.func @main() -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.while(%i = %zero) : tensor<i32> cond {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %p = stablehlo.compare NE, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %n = stablehlo.add %i, %two : tensor<i32>
    stablehlo.return %n : tensor<i32>
  }
  return %r : tensor<i32>
}
'''


def children(pid):
    found = []
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as f:
            found += [int(word) for word in f.read().split()]
    return found


class KilnRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = f'{self.folder.name}/{name}'
        with open(path, 'wb' if isinstance(text, bytes) else 'w') as f:
            f.write(text)
        return path

    def check(self, *arguments):
        return subprocess.run([TOOL, '--check', *arguments], capture_output=True, text=True,
                              timeout=120)

    def test_verdicts(self):
        for platform in ('reference', 'cpu', 'gpu'):
            with self.subTest(platform):
                good, bad = self.write('good.mlir', PASS), self.write('bad.mlir', FAIL)
                done = self.check(f'--platform={platform}', good, bad, good)
                lines = done.stdout.splitlines()
                self.assertEqual(lines[0], f'PASS {good}')
                self.assertRegex(lines[1], f'^FAIL {re.escape(bad)}: .*is 4 and should be 5')
                self.assertEqual(lines[2:], [f'PASS {good}',
                                             'checked 3: 2 passed, 1 failed, 0 skipped'])
                self.assertEqual(done.returncode, 1)

    def test_all_passed(self):
        done = self.check(self.write('a.mlir', PASS))
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.endswith('checked 1: 1 passed, 0 failed, 0 skipped\n'))

    def test_bounded_sizes(self):
        # A size that is another one, and an element.
        wrong = [BOUNDED.replace('dense<3>', 'dense<2>', 1), BOUNDED.replace('6.0]', '7.0]')]
        for platform in ('reference', 'cpu', 'gpu'):
            with self.subTest(platform):
                paths = [self.write(f'{k}.mlir', text) for k, text in enumerate([BOUNDED] + wrong)]
                done = self.check(f'--platform={platform}', *paths)
                verdicts = [line.split()[0] for line in done.stdout.splitlines()]
                self.assertEqual(verdicts, ['PASS', 'FAIL', 'FAIL', 'checked'], done.stdout)
                self.assertIn('is 6 and should be 7', done.stdout)

    def test_paths_are_printed_as_given(self):
        self.write('a.mlir', PASS)
        done = subprocess.run([os.path.abspath(TOOL), '--check', './a.mlir'], capture_output=True,
                              text=True, cwd=self.folder.name)
        self.assertEqual(done.stdout.splitlines()[0], 'PASS ./a.mlir')

    def test_skipped(self):
        disabled = self.write('d.mlir', '// RUN-DISABLED(no such thing): x\n' + FAIL)
        empty = self.write('e.mlir', '// nothing\n')
        takes = self.write('t.mlir', 'func.func @main(%a: tensor<f32>) -> tensor<f32> {\n'
                                     '  return %a : tensor<f32>\n}\n')
        sizes = self.write('s.mlir', 'func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n'
                                     '  return %a : tensor<?xf32>\n}\n')
        done = self.check(disabled, empty, takes, sizes)
        self.assertEqual(done.stdout.splitlines(), [
            f'SKIP {disabled}: marked RUN-DISABLED: no such thing',
            f'SKIP {empty}: has no module', f'SKIP {takes}: its entry takes arguments',
            f'SKIP {sizes}: its entry takes arguments of unknown sizes',
            'checked 4: 0 passed, 0 failed, 4 skipped'])
        self.assertEqual(done.returncode, 0)
        self.assertIn(f'FAIL {disabled}', self.check('--disabled-too', disabled).stdout)

    def test_several_modules_a_file(self):
        text = PASS + '// // -----\n' + PASS + '  // -----\n' + FAIL
        path = self.write('several.mlir', text)
        line = self.check(path).stdout.splitlines()[0]
        # The third module begins behind 2 of 6 lines and 2 that part them.
        self.assertRegex(line, f'^FAIL {re.escape(path)}: module of line 15: ')
        broken = self.write('broken.mlir', PASS + '// -----\n' + 'func.func @main( {\n')
        self.assertIn('line 8, column', self.check(broken).stdout)

    def test_what_cannot_be_read(self):
        for path in (f'{self.folder.name}/none.mlir', self.write('noise.mlir', b'\xff\x00\x01'),
                     self.write('bytecode.mlir.bc', b'ML\xefR\x0d')):
            done = self.check(path)
            self.assertRegex(done.stdout.splitlines()[0], f'^FAIL {re.escape(path)}: .')
            self.assertEqual(done.returncode, 1)

    def test_what_hangs_is_ended(self):
        hang, good = self.write('hang.mlir', HANG), self.write('good.mlir', PASS)
        done = self.check('--deadline=2', '--jobs=1', good, hang, good)
        self.assertEqual(done.stdout.splitlines(), [
            f'PASS {good}', f'FAIL {hang}: took longer than 2 s', f'PASS {good}',
            'checked 3: 2 passed, 1 failed, 0 skipped'])

    def test_what_ends_its_process_takes_no_other_along(self):
        hang, good = self.write('hang.mlir', HANG), self.write('good.mlir', PASS)
        process = subprocess.Popen([TOOL, '--check', '--jobs=1', hang, good],
                                   stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not children(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        for child in children(process.pid):
            os.kill(child, signal.SIGSEGV)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(out.splitlines(), [
            f'FAIL {hang}: the process ended by signal 11 (Segmentation fault)', f'PASS {good}',
            'checked 2: 1 passed, 1 failed, 0 skipped'])

    def test_programs_are_saved_and_checked(self):
        for platform in ('reference', 'cpu', 'gpu'):
            with self.subTest(platform):
                saved = []
                for name, text in (('good', PASS), ('bad', FAIL)):
                    path = f'{self.folder.name}/{name}'
                    done = subprocess.run([TOOL, f'--platform={platform}', '--save', path,
                                           self.write(f'{name}.mlir', text)],
                                          capture_output=True, text=True, timeout=120)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))
                    saved.append(path)
                lines = self.check(f'--platform={platform}', *saved).stdout.splitlines()
                self.assertEqual(lines[0], f'PASS {saved[0]}')
                self.assertRegex(lines[1], f'^FAIL {re.escape(saved[1])}: .*is 4 and should be 5')
        other = self.check('--platform=cpu', f'{self.folder.name}/good').stdout
        self.assertIn('it was compiled for', other)

    def test_what_cannot_be_saved(self):
        for path, program, text in (('none/x', PASS, 'No such file'), ('x', 'noise', 'line 1')):
            done = subprocess.run([TOOL, '--save', f'{self.folder.name}/{path}',
                                   self.write('p.mlir', program)],
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)
        self.assertEqual(os.listdir(self.folder.name), ['p.mlir'])

    def test_usage(self):
        for arguments in ([], ['--platform=tpu', 'x'], ['--deadline=0', 'x']):
            done = self.check(*arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, '')


if __name__ == '__main__':
    unittest.main()
