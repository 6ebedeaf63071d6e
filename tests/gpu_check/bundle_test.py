#!/usr/bin/python3
"""usage: bundle_test.py --driver STANDIN --cublas STANDIN -- COMMAND... BUNDLE ARGUMENTS...

Makes the bundle for machines with a GPU by the command, in which BUNDLE stands for the file, unpacks
it into an empty folder and runs it in an empty environment: without a GPU, on the emulated one, and
with the stand-ins for the driver (tests/support/cuda) and for cuBLAS, which tell times, but whose
kernels compute nothing.
"""

import argparse
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest

MOST_BYTES = 60 * 1000 * 1000
LIBC = re.compile(r'(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux-[a-z0-9_-]+\.so\.\d+)$')
MEMORY = ['copy by a kernel that negates', 'x + y * z', 'reduce_sum(x + y * z)',
          'softmax of rows of 1024', 'layer norm of rows of 1024', 'transpose of a matrix']
GEMMS = ['gemm, f32 exact', 'gemm, f16', 'gemm, bf16']
DEMO = ['demo, step op by op', 'demo, step compiled', 'demo, step time, op by op over compiled',
        'demo, kernels of a step op by op', 'demo, kernels of a step compiled',
        'demo, kernel time, op by op over compiled', 'demo, launches of a step op by op',
        'demo, launches of a step compiled', 'demo, losses differ by']
# Tests that do what tests do when all is not well.
FAKE_TESTS = r'''#!/bin/bash
if [ "$1" = --gtest_list_tests ]; then
  printf 'A.\n  Passes\n  Crashes\n  AfterCrash\n  Skips\nB/0.  # TypeParam = int\n  Fails\n  Consequence\n'
  printf 'C.\n  Alone  # GetParam() = 3\n'
  exit 0
fi
IFS=: read -ra names <<<"${1#--gtest_filter=}"
lost=
for name in "${names[@]}"; do
  echo "[ RUN      ] $name"
  case $name in
    A.Crashes) echo 'about to crash'; kill -SEGV $$ ;;
    A.Skips) echo "[  SKIPPED ] $name (0 ms)" ;;
    B/0.Fails) lost=1; echo 'not equal'; echo "[  FAILED  ] $name (7 ms)" ;;
    B/0.Consequence)
      if [ -n "$lost" ]; then echo "[  FAILED  ] $name (0 ms)"; else echo "[       OK ] $name (2 ms)"; fi ;;
    *) echo "[       OK ] $name (1500 ms)" ;;
  esac
done
echo "[  FAILED  ] 1 test, listed below:"
'''
args = None


def no_constants(name):
    raise ValueError(f'{name} is no JSON')


class BundleTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.bundle = f'{cls.scratch.name}/kiln-gpu-check.tar.gz'
        command = [cls.bundle if a == 'BUNDLE' else a for a in args.command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with tarfile.open(cls.bundle) as bundle:
            bundle.extractall(f'{cls.scratch.name}/there')
        cls.root = f'{cls.scratch.name}/there/kiln-gpu-check'

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def check(self, *arguments, root=None, **environment):
        """Runs gpu-check in an environment of nothing else; its result, report and table."""
        out = tempfile.mkdtemp(dir=self.scratch.name)
        result = subprocess.run([f'{root or self.root}/bin/gpu-check', '--out', out, *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                timeout=240, env=environment, cwd=self.scratch.name)
        report = table = None
        if os.path.exists(f'{out}/gpu-check.json'):
            with open(f'{out}/gpu-check.json') as f:
                report = json.load(f, parse_constant=no_constants)
            with open(f'{out}/gpu-check.txt') as f:
                table = f.read()
        return result, report, table

    def with_standin(self, *arguments, settings='', **environment):
        return self.check(*arguments, KILN_CUDA_LIBRARY=args.driver, KILN_TEST_CUDA=settings,
                          **environment)

    def figures(self, report):
        return {f['name']: f for f in report['figures']}

    def programs(self):
        for folder in ('bin', 'lib'):
            for name in sorted(os.listdir(f'{self.root}/{folder}')):
                yield f'{self.root}/{folder}/{name}'

    def test_size(self):
        size = os.path.getsize(self.bundle)
        print(f'{size / 1e6:.1f} MB')
        self.assertLess(size, MOST_BYTES)

    def test_needs_libc_alone(self):
        inside = {os.path.basename(p) for p in self.programs()}
        for program in self.programs():
            dynamic = subprocess.run(['readelf', '-dW', program], check=True, text=True,
                                     stdout=subprocess.PIPE).stdout
            for name in re.findall(r'\(NEEDED\)[^\[]*\[([^\]]*)\]', dynamic):
                self.assertTrue(LIBC.match(name) or name in inside, f'{program} needs {name}')
            found = subprocess.run(['/usr/bin/ldd', program], check=True, text=True, env={},
                                   stdout=subprocess.PIPE).stdout
            self.assertNotIn('not found', found, program)
            for path in re.findall(r'=> (\S+)', found):
                self.assertTrue(LIBC.search(os.path.basename(path)) or
                                os.path.realpath(path).startswith(os.path.realpath(self.root)),
                                f'{program} finds {path}')
            sections = subprocess.run(['readelf', '-SW', program], check=True, text=True,
                                      stdout=subprocess.PIPE).stdout
            self.assertNotIn('.debug_info', sections, program)
            self.assertNotIn('.symtab', sections, program)

    def test_says_why_there_is_no_gpu(self):
        result, report, _ = self.check(KILN_CUDA_LIBRARY='/nowhere/libcuda.so.1')
        self.assertEqual(result.returncode, 2)
        self.assertIn('no GPU', result.stderr)
        self.assertIn('no CUDA driver: /nowhere/libcuda.so.1', result.stderr)
        self.assertIsNone(report)
        result, _, _ = self.with_standin(settings='devices=0')
        self.assertEqual(result.returncode, 2)
        self.assertIn('knows of no GPU', result.stderr)

    def test_wrong_options(self):
        for wrong in (['--nonsense'], ['--out'], ['--jobs', 'few'], ['--filter', '('],
                      ['--bench-only', '--tests-only']):
            result, report, _ = self.check(*wrong)
            self.assertEqual(result.returncode, 64, wrong)
            self.assertIn('usage: gpu-check', result.stderr)
            self.assertIsNone(report)

    def test_emulated(self):
        result, report, table = self.check('--emulate')
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(table, result.stdout)
        for key in ('device', 'processor', 'library', 'date', 'clock', 'seconds'):
            self.assertIn(key, report)
        self.assertIn('emulated', report['device'])
        self.assertFalse(report['failed'])
        figures = self.figures(report)
        for name in MEMORY + GEMMS + DEMO:
            self.assertIn('value', figures[name], name)
            self.assertNotIn('error', figures[name], name)
            self.assertIn(name, table)
        for name in MEMORY + GEMMS:
            self.assertIs(figures[name]['correct'], True, name)
            self.assertLessEqual(figures[name]['difference'], figures[name]['allowed'], name)
            self.assertGreater(figures[name]['median_us'], 0, name)
        for name in MEMORY[1:]:
            self.assertEqual(figures[name]['peer'], 'copy')
            self.assertAlmostEqual(figures[name]['ratio'],
                                   figures[name]['value'] / figures[MEMORY[0]]['value'])
        self.assertEqual(figures['demo, kernel time, op by op over compiled']['peer_value'], 1.757)
        self.assertEqual(figures['demo, step time, op by op over compiled']['peer_value'], 1.375)
        self.assertIs(figures['demo, launches of a step compiled']['met'], True)
        self.assertGreater(len(report['tests']), 3)
        for test in report['tests']:
            self.assertEqual(test['state'], 'passed', test)

    def test_driver_clock_and_wrong_results(self):
        """The stand-in's clock has a millisecond for each piece of work, the second event's own
        among them. Its kernels compute nothing, which must not go for a result."""
        result, report, table = self.with_standin(
            '--bench-only', '--check', '--filter', '^(copy|elementwise|reduce)',
            settings='memory_bytes=33554432')
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(report['clock'], 'events on the GPU')
        self.assertEqual(report['architecture'], 'sm_86')
        self.assertEqual(report['driver'], 'CUDA 12.4')
        figures = self.figures(report)
        copy = figures['copy by the driver']
        self.assertEqual(copy['median_us'], 2000)
        self.assertEqual(copy['minimum_us'], 2000)
        self.assertGreaterEqual(copy['runs'], 20)
        self.assertEqual(copy['bytes'], 2 * 4194304)
        self.assertAlmostEqual(copy['value'], 2 * 4194304 / 2e-3 / 1e9)
        fused = figures['x + y * z']
        self.assertIs(fused['correct'], False)
        self.assertEqual((fused['at_least'], fused['met']), (0.85, False))
        self.assertGreaterEqual(fused['median_us'], 2000)
        self.assertEqual(fused['peer_value'], copy['value'])
        self.assertIn('WRONG', table)
        self.assertIn('MISSED', table)
        self.assertTrue(report['failed'])

    def test_beside_cublas(self):
        result, report, table = self.with_standin('--quick', '--bench-only', '--filter', 'gemm',
                                                  '--cublas', args.cublas)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(len(report['figures']), 8)
        for figure in report['figures']:
            self.assertEqual(figure['peer'], 'cuBLAS 12.3.4', figure)
            self.assertNotIn('error', figure)
            self.assertLess(figure['peer_difference'], 0.01)
            self.assertIs(figure['correct'], False)
            self.assertAlmostEqual(figure['ratio'], figure['value'] / figure['peer_value'])
        self.assertIn('cuBLAS 12.3.4', table)
        _, report, _ = self.with_standin('--quick', '--bench-only', '--filter', 'gemm_bf16')
        if report['figures'][0]['peer'] == 'cuBLAS':
            # One that is installed does not start without a GPU.
            self.assertRegex(report['figures'][0]['note'], 'no cuBLAS: |cublasCreate: status')

    def test_a_failure_is_one_figures(self):
        """Of each benchmark's process the same call of the driver fails, and loses the context."""
        result, report, table = self.with_standin(
            '--quick', '--bench-only', '--filter', '^(copy_by_driver|transpose)',
            settings='fail=300,fail_with=700')
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(len(report['figures']), 2)
        for figure in report['figures']:
            self.assertIn('illegal memory access', figure['error'])
        self.assertIn('ERROR', table)

    def test_tests_that_crash(self):
        root = f'{self.scratch.name}/other/kiln-gpu-check'
        os.makedirs(f'{root}/bin')
        os.symlink(f'{self.root}/lib', f'{root}/lib')
        os.link(f'{self.root}/bin/gpu-check', f'{root}/bin/gpu-check')
        with open(f'{root}/bin/kiln-unit', 'w') as f:
            f.write(FAKE_TESTS)
        os.chmod(f'{root}/bin/kiln-unit', stat.S_IRWXU)
        result, report, table = self.check('--emulate', '--tests-only', root=root)
        self.assertEqual(result.returncode, 1, result.stdout)
        tests = {t['name']: t for t in report['tests']}
        states = {name: test['state'] for name, test in tests.items()}
        self.assertEqual(states, {
            'A.Passes': 'passed', 'A.Crashes': 'failed', 'A.AfterCrash': 'passed',
            'A.Skips': 'skipped', 'B/0.Fails': 'failed', 'B/0.Consequence': 'passed',
            'C.Alone': 'passed', 'capi-gpu': 'failed', 'capi-gpu_training': 'failed'})
        self.assertEqual(tests['A.Passes']['seconds'], 1.5)
        self.assertIn('about to crash', tests['A.Crashes']['output'])
        self.assertIn('signal 11', tests['A.Crashes']['output'])
        self.assertIn('not equal', tests['B/0.Fails']['output'])
        self.assertIn('cannot run', tests['capi-gpu']['output'])
        self.assertIn('FAILED A.Crashes', table)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--driver', required=True)
    parser.add_argument('--cublas', required=True)
    parser.add_argument('command', nargs='+')
    args = parser.parse_args()
    unittest.main(argv=sys.argv[:1], verbosity=2)
