#!/usr/bin/python3
"""usage: demo_output.py --demo PROGRAM --opt KILN_OPT --digits DIR [--llvm-as LLVM_AS]

Runs docs/examples/mnist_softmax.c for a few steps and checks what it leaves behind: figures,
timelines in Chrome's format, and the graph at every stage under XLA's names, each in a form that
its readers take. Then feeds it damaged data. What needs Graphviz or ptxas is looked at where they
are installed.
"""

import argparse
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

STEPS = 12
TRACED_STEPS = 5
MODES = {'jit_off': 'timeline.no_jit.json', 'jit_on': 'timeline.jit.json'}
STEP = {'jit_off': 'mnist_softmax', 'jit_on': 'cluster_0'}  # the names of a step's bar
GRAPH = 'module_0001.mnist_softmax.'
PREFIX = 'module_0002.cluster_0.'
STAGE = re.compile(r'(\d{4})\.optimization\.after_([a-z-]+)\.before_([a-z-]+)\.(dot|txt)')
args = None


def demo(*arguments, **environment):
    return subprocess.run([args.demo, '--threads', '2', *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120,
                          env=dict(os.environ, **environment))


def no_constants(name):
    raise ValueError(f'{name} is no JSON')


def write_idx(path, sizes, data, magic=0x800):
    with open(path, 'wb') as f:
        f.write(struct.pack(f'>{1 + len(sizes)}I', magic + len(sizes), *sizes) + data)


class OutputTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.out = f'{cls.scratch.name}/not there/yet'
        cls.result = demo('--steps', str(STEPS), '--out', cls.out)
        cls.files = sorted(os.listdir(cls.out)) if os.path.isdir(cls.out) else []

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def read(self, name):
        with open(f'{self.out}/{name}') as f:
            return f.read()

    def accepts(self, *command, **options):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, **options)
        self.assertEqual(result.returncode, 0, f'{command}\n{result.stdout}')
        return result.stdout

    def figures(self):
        return json.loads(self.read('demo.json'), parse_constant=no_constants)

    def test_succeeds_quietly(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual(self.result.stderr, '')
        # The progress bar is for terminals.
        self.assertNotIn('\r', self.result.stdout)
        for word in ('JIT off', 'JIT on', 'kernels per step', 'steps per second', 'times as fast'):
            self.assertIn(word, self.result.stdout)

    def test_figures(self):
        figures = self.figures()
        self.assertEqual(list(figures), [*MODES, 'ratio', 'max_rel_loss_difference'])
        types = {'step_us_median': float, 'steps_per_second': float, 'kernels_per_step': int,
                 'temporary_bytes': int, 'compile_ms': float, 'test_accuracy': float}
        for mode in MODES:
            self.assertEqual({key: type(value) for key, value in figures[mode].items()}, types)
            self.assertGreater(figures[mode]['step_us_median'], 0)
            self.assertGreater(figures[mode]['compile_ms'], 0)
            self.assertGreater(figures[mode]['steps_per_second'], 0)
            self.assertGreaterEqual(figures[mode]['temporary_bytes'], 0)
            # Guessing gives 0.1; some steps are much better.
            self.assertGreater(figures[mode]['test_accuracy'], 0.3)
            self.assertLessEqual(figures[mode]['test_accuracy'], 1)
        off, on = figures['jit_off'], figures['jit_on']
        self.assertLess(on['kernels_per_step'], off['kernels_per_step'])
        self.assertLess(on['temporary_bytes'], off['temporary_bytes'])
        self.assertAlmostEqual(figures['ratio'] * on['step_us_median'] / off['step_us_median'],
                               1, places=2)
        self.assertIs(type(figures['max_rel_loss_difference']), float)
        self.assertLessEqual(figures['max_rel_loss_difference'], 1e-5)
        self.assertGreaterEqual(figures['max_rel_loss_difference'], 0)

    def bars(self, name):
        """The bars of a timeline, whose format is checked."""
        timeline = json.loads(self.read(name), parse_constant=no_constants)
        self.assertIs(type(timeline), dict)
        self.assertIn(timeline.get('displayTimeUnit', 'ms'), ('ms', 'ns'))
        self.assertIs(type(timeline['traceEvents']), list)
        bars = []
        for event in timeline['traceEvents']:
            self.assertIs(type(event['name']), str)
            self.assertNotEqual(event['name'], '')
            self.assertIs(type(event['pid']), int)
            self.assertIs(type(event['tid']), int)
            self.assertIn(event['ph'], ('X', 'M'))
            for key, value in event.get('args', {}).items():
                self.assertIs(type(key), str)
                self.assertIn(type(value), (str, int, float))
            if event['ph'] == 'M':
                self.assertIn(event['name'], ('thread_name', 'process_name'))
                continue
            self.assertIs(type(event['cat']), str)
            for time in ('ts', 'dur'):
                self.assertIn(type(event[time]), (int, float))
                self.assertGreaterEqual(event[time], 0)
            bars.append(event)
        return bars

    def check_nesting(self, bars):
        """On one thread bars follow each other or lie in each other, down to what times resolve."""
        open_until = {}
        for bar in sorted(bars, key=lambda b: (b['ts'], -b['dur'])):
            ends = open_until.setdefault((bar['pid'], bar['tid']), [])
            end = bar['ts'] + bar['dur']
            while ends and ends[-1] <= bar['ts'] + 0.002:
                ends.pop()
            if ends:
                self.assertLessEqual(end, ends[-1] + 0.002, bar)
            ends.append(end)

    def test_timelines(self):
        ops_of = {}
        for mode, name in MODES.items():
            bars = self.bars(name)
            self.check_nesting(bars)
            steps = [b for b in bars if b['cat'] == 'execute']
            kernels = [b for b in bars if b['cat'] == 'kernel']
            self.assertEqual([b['name'] for b in steps], [STEP[mode]] * TRACED_STEPS)
            for step in steps:
                inside = [k for k in kernels
                          if step['ts'] <= k['ts'] <= step['ts'] + step['dur']]
                self.assertEqual(len(inside), self.figures()[mode]['kernels_per_step'])
            self.assertEqual(len(kernels), TRACED_STEPS * self.figures()[mode]['kernels_per_step'])
            ops_of[mode] = [k['args']['ops'].split(', ') for k in kernels]
        self.assertEqual({len(ops) for ops in ops_of['jit_off']}, {1})
        self.assertGreater(max(len(ops) for ops in ops_of['jit_on']), 3)
        # Bars say what they compute in the words of the program.
        # Whether an operand is packed, by a kernel of its own, depends on the machine.
        named = [{op for ops in ops_of[mode] for op in ops
                  if '/' in op and not op.startswith('pack ')} for mode in MODES]
        self.assertEqual(named[0], named[1])
        self.assertGreaterEqual(named[0], {'forward/matmul', 'forward/exp', 'loss/mean',
                                           'gradient/weights', 'update/bias'})

    def test_no_other_files(self):
        left = [name for name in self.files if not name.startswith((GRAPH, PREFIX))]
        self.assertEqual(left, ['demo.json', *sorted(MODES.values())])
        graphs = {name[len(GRAPH):] for name in self.files if name.startswith(GRAPH)}
        pictures = {'after_clustering.svg'} if shutil.which('dot') else set()
        stages = ('before_placement', 'after_placement', 'after_clustering')
        self.assertEqual(graphs, pictures | {f'{stage}.{form}' for form in ('txt', 'dot')
                                             for stage in stages})
        suffixes = {name[len(PREFIX):] for name in self.files if name.startswith(PREFIX)}
        plain = {s for s in suffixes if not STAGE.fullmatch(s)}
        drawn = ['before_optimizations', 'cpu_after_optimizations']
        forms = ('txt', 'dot', 'svg') if pictures else ('txt', 'dot')
        self.assertEqual(plain, {*(f'{stage}.{form}' for form in forms for stage in drawn),
                                 'cpu_after_optimizations-buffer-assignment.txt',
                                 'cpu_after_optimizations-cost-analysis.txt',
                                 'cpu_after_optimizations-memory-usage-report.txt', 'plan.txt',
                                 'ir-no-opt.ll', 'ptx'})
        for name in self.files:
            self.assertGreater(os.path.getsize(f'{self.out}/{name}'), 0, name)

    def test_graph_after_every_pass(self):
        stages = [m for m in (STAGE.fullmatch(n[len(PREFIX):]) for n in self.files) if m]
        graphs = [m for m in stages if m[4] == 'dot']
        self.assertGreater(len(graphs), 10)
        self.assertEqual([int(m[1]) for m in graphs], list(range(len(graphs))))
        self.assertEqual(graphs[0][2], 'pipeline-start')
        self.assertEqual(graphs[-1][3], 'pipeline-end')
        for earlier, later in zip(graphs, graphs[1:]):
            self.assertEqual(earlier[3], later[2])
        self.assertEqual([m[1] for m in stages if m[4] == 'txt'], [m[1] for m in graphs])
        dot = shutil.which('dot')
        for name in self.files:
            path = f'{self.out}/{name}'
            if name.endswith('.svg'):
                root = xml.etree.ElementTree.parse(path).getroot()
                self.assertEqual(root.tag, '{http://www.w3.org/2000/svg}svg')
            elif name.endswith('.dot') and dot:
                self.accepts(dot, '-Tcanon', path)
        # Fusions are boxes around their ops.
        self.assertNotIn('label="fusion ', self.read(PREFIX + graphs[0][0]))
        self.assertIn('label="fusion ', self.read(PREFIX + graphs[-1][0]))

    def test_stages_can_be_read_again(self):
        for suffix in ('before_optimizations.txt', 'cpu_after_optimizations.txt'):
            text = self.accepts(args.opt, '--verify', f'{self.out}/{PREFIX}{suffix}')
            self.assertEqual(text.strip(), self.read(PREFIX + suffix).strip())
        kernels = self.figures()['jit_on']['kernels_per_step']
        self.assertEqual(self.read(PREFIX + 'plan.txt').count('\n  launch '), kernels)
        if args.llvm_as:
            self.accepts(args.llvm_as, '-o', os.devnull, f'{self.out}/{PREFIX}ir-no-opt.ll')

    def test_ptx(self):
        names = [name for name in self.files if name.endswith('.ptx')]
        self.assertEqual(names, [PREFIX + 'ptx'])
        # A GPU takes its own number of kernels for a step, but not many.
        self.assertIn(self.read(names[0]).count('.entry'), range(2, 10))
        ptxas = shutil.which('ptxas', path=os.environ['PATH'] + ':/usr/local/cuda/bin')
        for name in names:
            self.assertIn('.target sm_80', self.read(name))
            if ptxas:
                self.accepts(ptxas, '-arch=sm_80', '-o', os.devnull, f'{self.out}/{name}')

    def test_again_into_the_same_folder(self):
        with tempfile.TemporaryDirectory() as out:
            others = ['module_0001.other.plan.txt', 'notes.txt']
            stale = ['module_0009.cluster_0.0099.optimization.after_a.before_b.dot',
                     'module_0008.mnist_softmax.after_clustering.dot']
            for name in (*stale, *others):
                with open(f'{out}/{name}', 'w') as f:
                    f.write('digraph {')
            result = demo('--steps', '1', '--out', out)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(sorted(os.listdir(out)), sorted(self.files + others))

    def test_as_make_demo_runs_it(self):
        with tempfile.TemporaryDirectory() as out:
            result = demo('--out', out)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(f'{out}/demo.json') as f:
                figures = json.load(f)
            for mode in MODES:
                self.assertGreaterEqual(figures[mode]['test_accuracy'], 0.88)

    def test_flags_of_the_environment(self):
        """They leave the dumps where they are, and what they ask for is done beside them."""
        with tempfile.TemporaryDirectory() as folder:
            out, dumps = f'{folder}/an "out"', f'{folder}/dumps'
            result = demo(f'--out={out}', '--steps=1', XLA_FLAGS=f'--xla_dump_to={dumps}',
                          KILN_FLAGS='--dump_hlo_as_text', TF_DUMP_GRAPH_PREFIX=dumps)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(sorted(os.listdir(out)), self.files)
            # Of each session a graph, and all that was compiled.
            names = os.listdir(dumps)
            self.assertEqual(sum(name.endswith('.after_clustering.dot') for name in names), 2)
            self.assertTrue(any('.cluster_0.' in name for name in names))

    def run_on(self, *device):
        """The lines of the output; GPUs are emulated."""
        with tempfile.TemporaryDirectory() as out:
            result = demo('--steps=2', f'--out={out}', *device, KILN_CUDA_LIBRARY='/not/there')
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(os.path.exists(f'{out}/demo.json'))
            return result.stdout.splitlines()

    def test_devices(self):
        self.assertRegex(self.run_on()[1], r'^CPU:0: cpu')
        lines = self.run_on('--device=XLA_CPU')
        self.assertRegex(lines[1], r'^XLA_CPU:0: cpu')
        self.assertIn('with the JIT off they run on CPU:0', lines[2])
        lines = self.run_on('--device', 'GPU:0')
        self.assertEqual(lines[1], 'GPU:0: emulated GPU, sm_80')
        self.assertIn('stands in for a GPU', lines[2])
        self.assertEqual(lines[3], '')
        lines = self.run_on('--device=XLA_GPU')
        self.assertEqual(lines[1], 'XLA_GPU:0: emulated GPU, sm_80')
        self.assertIn('with the JIT off they run on GPU:0', lines[3])
        for name in ('GPU:7', 'CPU:7', 'TPU:0', '5'):
            result = demo(f'--device={name}')
            self.assertEqual(result.returncode, 1, name)
            self.assertIn(name, result.stderr)

    def test_without_graphviz(self):
        with tempfile.TemporaryDirectory() as out:
            result = demo('--steps', '1', '--out', out, PATH=out)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn('Graphviz is not installed', result.stdout)
            self.assertEqual([n for n in os.listdir(out) if '.svg' in n], [])

    def test_progress_on_a_terminal(self):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest('no pseudo-terminal: %s' % error)
        with tempfile.TemporaryDirectory() as out:
            child = subprocess.Popen([args.demo, '--steps', '100', '--out', out], stdout=theirs)
            os.close(theirs)
            text = b''
            try:
                while True:
                    piece = os.read(ours, 4096)
                    if not piece:
                        break
                    text += piece
            except OSError:  # what Linux says at the end
                pass
            os.close(ours)
            self.assertEqual(child.wait(), 0)
            for mode in (b'JIT off', b'JIT on'):
                self.assertRegex(text, rb'\r' + mode + rb' +\[#{20} {20}\] 50/100')


class DataTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = f'{folder.name}/out'
        self.data = f'{folder.name}/data'
        shutil.copytree(args.digits, self.data)
        self.images = f'{self.data}/train-images-idx3-ubyte'
        self.labels = f'{self.data}/train-labels-idx1-ubyte'

    def run_demo(self):
        return demo('--steps', '2', '--data', self.data, '--out', self.out)

    def refused(self, *pieces):
        result = self.run_demo()
        self.assertEqual(result.returncode, 1, result.stderr)
        for piece in pieces:
            self.assertIn(piece, result.stderr)
        self.assertFalse(os.path.exists(self.out))

    def test_missing(self):
        os.remove(self.labels)
        self.refused('cannot read', self.labels, 'No such file')

    def test_bad_magic_number(self):
        write_idx(self.images, [1500, 8, 8], bytes(1500 * 64), magic=0xd00)
        self.refused(self.images, 'bad magic number 0x00000d03; expected 0x00000803')
        shutil.copy(f'{args.digits}/train-labels-idx1-ubyte', self.images)
        self.refused('bad magic number 0x00000801; expected 0x00000803')

    def test_compressed(self):
        with open(self.images, 'wb') as f:
            f.write(b'\x1f\x8b\x08\0')
        self.refused('gunzip')

    def test_truncated(self):
        for keep in (0, 3, 4, 15, 16, 5000):
            shutil.copy(f'{args.digits}/train-images-idx3-ubyte', self.images)
            os.truncate(self.images, keep)
            self.refused(self.images, 'truncated')

    def test_too_long(self):
        with open(self.images, 'ab') as f:
            f.write(b'\0')
        self.refused('too long: its sizes make 96000 bytes of data, there are 96001')

    def test_empty_and_huge(self):
        write_idx(self.images, [0, 8, 8], b'')
        self.refused('empty, or too large')
        write_idx(self.images, [0xffffffff] * 3, bytes(64))
        self.refused('empty, or too large')

    def test_counts_differ(self):
        write_idx(self.labels, [1499], bytes(1499))
        self.refused('1500 images', '1499 labels')

    def test_no_digit(self):
        write_idx(self.labels, [1500], bytes(1499) + b'\x0a')
        self.refused('label 1499 is 10')

    def test_fewer_images_than_a_batch_of_another_shape(self):
        write_idx(self.images, [3, 28, 28], bytes(range(256)) * 9 + bytes(48))
        write_idx(self.labels, [3], bytes([0, 1, 2]))
        write_idx(f'{self.data}/t10k-images-idx3-ubyte', [1, 1, 5], bytes(5))
        write_idx(f'{self.data}/t10k-labels-idx1-ubyte', [1], bytes([0]))
        result = self.run_demo()
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_arguments(self):
        for arguments in (['--steps', '0'], ['--steps', 'many'], ['--steps', '3x'], ['--threads'],
                          ['--threads', '-1'], ['--what', '1'], ['digits']):
            result = demo(*arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn(arguments[0], result.stderr)
        self.assertIn('usage', demo('--what', '1').stderr)
        with open(self.out, 'w') as f:
            f.write('in the way of the folder')
        result = self.run_demo()
        self.assertEqual(result.returncode, 1)
        self.assertIn(self.out, result.stderr)


def main():
    global args
    parser = argparse.ArgumentParser()
    parser.add_argument('--demo', required=True)
    parser.add_argument('--opt', required=True)
    parser.add_argument('--digits', required=True)
    parser.add_argument('--llvm-as', default='')
    args, rest = parser.parse_known_args()
    unittest.main(argv=['demo_output.py', *rest])


if __name__ == '__main__':
    main()
