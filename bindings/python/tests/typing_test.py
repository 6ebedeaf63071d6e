"""The package and a program that uses it pass `mypy --strict`; without mypy, nothing is tried."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../kiln')

PROGRAM = '''
import numpy
import kiln


def mean_square(context: kiln.Context) -> kiln.Graph:
    graph = context.graph('mean_square')
    x: kiln.Value = graph.parameter('f32', [graph.symbol('n'), 3], 'x')
    y: kiln.Value = numpy.exp(x[:, ::2] - x.max(axis=1, keepdims=True))
    total: kiln.Value = graph.reduce_by(x * x + 1, [0], 'SUM') / 2.0
    graph.set_results(total, graph.convert(x == 0, numpy.int8), graph.slice(total, [0], [2]), y)
    return graph


@kiln.jit
def doubled(x: kiln.Value) -> kiln.Value:
    return x + x


@kiln.jit(device='XLA_CPU:0', static_argnums=1)
def power(x: kiln.Value, n: int) -> kiln.Value:
    return x if n == 1 else x * x


with kiln.Context(threads=1) as context:
    executable: kiln.Executable = mean_square(context).compile(symbols={'n': 2})
    results = executable(numpy.ones((2, 3), numpy.float32))
    first: kiln.Buffer = results[0]
    number: float = float(first[0]) + float(results[0].item())
    started, event = executable.start([first], donate=True)
    event.cancel()
    try:
        event.wait(timeout=1.0)
    except kiln.KilnError as error:
        if error.code == kiln.Code.CANCELLED:
            print(error.message)
    print(first.shape.dims, first.dtype.name, executable.cost.flops)
    twice: kiln.Buffer = kiln.jit(doubled, context=context)(power(numpy.ones(2), 2))
    print(twice, doubled.cache_info().hits)
'''
# Each line is a mistake that the types tell.
MISTAKES = '''
import kiln

context = kiln.Context()
graph = context.graph()
graph.no_such_op()
graph.add(graph.parameter('f32'))
graph.slice(graph.parameter('f32'), 1, 2)
graph.parameter('f32').shape.append(1)
kiln.Buffer('address')
kiln.jit(device=3)
'''


def command():
    """How mypy is run here; None where it is not installed."""
    if importlib.util.find_spec('mypy'):
        return [sys.executable, '-m', 'mypy']
    program = shutil.which('mypy')
    return [program] if program else None


@unittest.skipUnless(command(), 'mypy is not installed')
class TypingTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # NumPy's own types take mypy several seconds.
        with open(os.path.join(cls.folder.name, 'mypy.ini'), 'w') as file:
            file.write('[mypy]\nstrict = True\nignore_missing_imports = True\n'
                       'cache_dir = cache\n[mypy-numpy.*]\nfollow_imports = skip\n')

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, *arguments):
        environment = dict(os.environ, MYPYPATH=os.path.dirname(PACKAGE))
        done = subprocess.run(
            command() + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True, cwd=self.folder.name, env=environment, check=False)
        return done.returncode, done.stdout

    def program(self, text):
        path = os.path.join(self.folder.name, 'program.py')
        with open(path, 'w') as file:
            file.write(text)
        return path

    def test_the_package_and_a_program(self):
        status, printed = self.check(PACKAGE, self.program(PROGRAM))
        self.assertEqual(status, 0, printed)

    def test_mistakes_are_seen(self):
        status, printed = self.check(self.program(MISTAKES))
        self.assertEqual(status, 1, printed)
        for line in range(6, 12):
            self.assertIn('program.py:{}: error'.format(line), printed)


if __name__ == '__main__':
    unittest.main()
