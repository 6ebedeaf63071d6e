"""The runner of JAX's tests, on files of a few cases that pass, fail, end their process, or hang. The
environment has KILN_PJRT_LIBRARY. Exit code 77 without JAX or pytest."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent / 'conformance' / 'run.py'
# JAX generates more cases of some tests for its own platforms.
EASY = '''
import os, pytest
def test_passes(): pass
for number in range(1 if 'kiln' in os.environ['JAX_PLATFORMS'] else 2):
    exec(f'def test_generated{number}(): pass')
'''
HARD = '''
import os, time, pytest
KILN = 'kiln' in os.environ['JAX_PLATFORMS']
def test_a(): pass
def test_ends():
    if KILN: os.abort()
def test_fails(): assert not KILN, 'it is so'
def test_fails_everywhere(): assert False
def test_hangs():
    if KILN: time.sleep(1000)
def test_skipped(): pytest.skip('no such package')
def test_skipped_by_name():
    if KILN: pytest.skip('not supported on kiln')
@pytest.fixture
def broken(): assert not KILN
def test_setup(broken): pass
def test_z(): pass
'''


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        tests = self.folder / 'jax' / 'tests'
        tests.mkdir(parents=True)
        (tests / 'easy_test.py').write_text(EASY)
        (tests / 'hard_test.py').write_text(HARD)
        self.page = self.folder / 'page.md'
        self.page.write_text('Before\n<!-- make jax-test begins -->\nold\n<!-- make jax-test ends -->\n')

    def run_files(self, *arguments):
        done = subprocess.run(
            [sys.executable, RUN, '--plugin', os.environ['KILN_PJRT_LIBRARY'], '--out',
             self.folder / 'out', '--limit', '10', *arguments], stdout=subprocess.PIPE, text=True,
            timeout=300, env={**os.environ, 'KILN_CONFORMANCE_DIR': str(self.folder)})
        return done.returncode, done.stdout

    def test_verdicts_and_the_page(self):
        code, text = self.run_files('--write', self.page)
        self.assertEqual(code, 1)
        self.assertIn('easy: 2 passed; 2 count, 0 of them failed', text)
        self.assertIn('hard: 1 crashed, 3 failed, 1 hung, 2 passed, 1 platform, 1 skipped; '
                      '6 count, 4 of them failed', text)
        self.assertIn('hard_test.py::test_ends: the process ended by SIGABRT', text)
        self.assertIn('hard_test.py::test_hangs: no end within 10 s', text)
        self.assertIn('it is so', text)
        page = self.page.read_text()
        self.assertTrue(page.startswith('Before\n') and 'old' not in page, page)
        self.assertIn('| `hard` | 9 | 2 | 1 | 1 | 1 | 6 | 4 |', page)
        self.assertIn('| all | 11 | 4 | 1 | 1 | 1 | 8 | 4 |', page)
        self.assertIn('of 8, 4 pass, 50.00 %', page)
        self.assertEqual(self.run_files()[1], text)  # of kept outcomes

    def test_good_files(self):
        code, text = self.run_files('easy')
        self.assertEqual(code, 0, text)
        self.assertIn('2 cases count, 100.00 % of them pass, 0 ended the process', text)

    def test_sample(self):
        code, text = self.run_files('--sample', '60', 'easy')
        self.assertEqual((code, text.splitlines()[0]), (0, 'easy: 2 passed'))
        code, text = self.run_files('--sample', '60', 'hard')
        self.assertEqual(code, 1)
        self.assertIn('5 failed without a reason', text)


if __name__ == '__main__':
    if any(importlib.util.find_spec(module) is None for module in ('jax', 'pytest')):
        print(f'skipped: {sys.executable} has no JAX or no pytest')
        sys.exit(77)
    unittest.main()
