#!/usr/bin/python3
"""usage: kiln_run_judge_test.py KILN_RUN WRONG_COMPILER

What kiln-run says of programs that agree with the reference, and of others: a library with a mistake,
which WRONG_COMPILER stands for, must be found out, and the mistake isolated and reduced.
"""

import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

WRONG = sys.argv.pop()
TOOL = sys.argv.pop()

GOOD = '''HloModule good

ENTRY main {
  x = f32[8,5] parameter(0), metadata={op_name="weights"}
  i = s32[3,1] parameter(1)
  g = f32[3,5] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
      index_vector_dim=1, slice_sizes={1,5}
  s = f32[3,5] sine(g)
  t = f32[3,5] multiply(s, s)
  n = f32[3,5] negate(t)
  ROOT r = (f32[3,5], s32[3,1]) tuple(n, i)
}
'''
CALLED = '''HloModule called

f {
  a = f32[6] parameter(0)
  b = f32[6] sine(a)
  ROOT c = f32[6] add(b, a)
}

ENTRY main {
  x = f32[6] parameter(0)
  y = f32[6] negate(x)
  z = f32[6] call(y), to_apply=f
  ROOT w = f32[6] multiply(z, z)
}
'''
STABLEHLO = '''func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.add %a, %b : tensor<4xf32>
  return %c : tensor<4xf32>
}
'''
# A loop without an end.
HANG = '''HloModule hang

c {
  s = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT p = pred[] compare(s, one), direction=NE
}
b {
  s = s32[] parameter(0)
  two = s32[] constant(2)
  ROOT n = s32[] add(s, two)
}
ENTRY main {
  zero = s32[] constant(0)
  ROOT w = s32[] while(zero), condition=c, body=b
}
'''
DONATED = '''HloModule donated, input_output_alias={ {}: (0, {}, must-alias) }

ENTRY main {
  x = f32[16] parameter(0)
  y = f32[16] parameter(1)
  ROOT z = f32[16] add(x, y)
}
'''
SWAPPED = '''HloModule swapped, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias) }

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT z = (f32[4], f32[4]) tuple(y, x)
}
'''


def npy(descr, shape, data):
    header = str({'descr': descr, 'fortran_order': False, 'shape': shape})
    header += ' ' * (-(len(header) + 11) % 64) + '\n'  # as NumPy aligns the elements
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + data


def floats(*values):
    return struct.pack(f'<{len(values)}f', *values)


def read_npy(path):
    """The header's text and the elements' bytes."""
    with open(path, 'rb') as f:
        data = f.read()
    end = 10 + struct.unpack('<H', data[8:10])[0]
    return data[10:end].decode(), data[end:]


class KilnRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = f'{self.folder}/{name}'
        with open(path, 'wb' if isinstance(text, bytes) else 'w') as f:
            f.write(text)
        return path

    def tool(self, *arguments, wrong=None, timeout=120, most_bytes=None):
        def limit():
            # Of private memory that is written: pages of mapped files are not counted.
            resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
            os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # stacks of threads are

        environment = dict(os.environ)
        environment.pop('XLA_FLAGS', None)
        if wrong:
            environment.update(LD_PRELOAD=WRONG, WRONG_OP=wrong[0], WRONG_AS=wrong[1])
        return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=timeout,
                              env=environment, cwd=self.folder,
                              preexec_fn=limit if most_bytes else None)

    def reports(self, *arguments, **options):
        done = self.tool('--json', *arguments, **options)
        made = json.loads(done.stdout)
        passed = all(report['verdict'] == 'pass' for report in made)
        self.assertEqual(done.returncode, 0 if passed else 1, done.stdout)
        return made

    def test_what_agrees(self):
        good, other = self.write('good.hlo', GOOD), self.write('other.mlir', STABLEHLO)
        for platform in ('cpu', 'gpu', 'reference'):
            done = self.tool(f'--platform={platform}', good, other)
            lines = done.stdout.splitlines()
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertRegex(lines[0], f'^PASS {good}: good on [A-Z]+:0 agrees with REFERENCE:0$')
            self.assertIn('  result 1 s32[3,1]: agrees', lines)
            self.assertEqual(lines[-1], 'ran 2: 2 passed, 0 failed')

    def test_formats(self):
        for text in ('// one\n/* two\n */ // three\n' + GOOD, CALLED.split('\n', 1)[1], '// HloModule\n' + STABLEHLO,
                     'module {\n' + STABLEHLO + '}\n'):
            self.assertEqual(self.reports(self.write('m', text))[0]['verdict'], 'pass')

    def test_arguments_without_memory(self):
        path = self.write('large.hlo', 'HloModule m\nENTRY e {\n  x = f32[1048576,1048576] parameter(0)\n'
                                       '  ROOT y = f32[] constant(0)\n}\n')
        [report] = self.reports(path)
        self.assertIn('RESOURCE_EXHAUSTED: they take 4398', report['failure'])

    def test_figures(self):
        [report] = self.reports('--iterations=7', self.write('good.hlo', GOOD))
        self.assertEqual(report['runs'], 6)
        for key in ('compile_ms', 'kernels', 'time_us', 'gflops', 'gbytes_per_s', 'reference_ms'):
            self.assertGreater(report[key], 0, key)
        self.assertLessEqual(report['least_time_us'], report['time_us'])
        self.assertEqual(report['temporary_bytes'], 0)
        text = self.tool('--iterations=7', f'{self.folder}/good.hlo').stdout
        self.assertRegex(text, r'compiled in [\d.]+ .s: \d+ kernels, 0 bytes of temporaries\n'
                               r'  time [\d.]+ .s \(median of 6\), [\d.e-]+ GFLOP/s, [\d.e-]+ GB/s')

    def test_inputs_depend_on_the_seed(self):
        path = self.write('good.hlo', GOOD)
        texts = [self.tool('--print', f'--seed={seed}', path).stdout for seed in (1, 1, 2)]
        arguments = [[line for line in t.splitlines() if 'argument' in line] for t in texts]
        self.assertEqual(len(arguments[0]), 2)
        self.assertEqual(arguments[0], arguments[1])
        self.assertNotEqual(arguments[0], arguments[2])
        zeros = self.tool('--print', '--random_init_input_literals=false', path).stdout
        self.assertIn('argument 1: { {0}, {0}, {0} }', zeros)

    def test_a_mistake_is_found(self):
        path = self.write('good.hlo', GOOD)
        [report] = self.reports('--isolate', path, wrong=('sine(', 'cosine('))
        self.assertEqual(report['verdict'], 'fail')
        wrong, right = report['results']
        self.assertEqual(right['wrong'], 0)
        self.assertEqual(wrong['elements'], 15)
        self.assertGreater(wrong['wrong'], 10)
        worst = wrong['worst']
        self.assertEqual(len(worst), 5)
        differences = [e['difference'] for e in worst]
        self.assertEqual(differences, sorted(differences, reverse=True))
        for e in worst:
            self.assertAlmostEqual(abs(float(e['actual']) - float(e['expected'])), e['difference'],
                                   places=5)
            self.assertEqual(len(e['index']), 2)
        self.assertEqual(report['isolated']['instruction'], 's')
        text = self.tool('--isolate', path, wrong=('sine(', 'cosine(')).stdout
        self.assertRegex(text, f'^FAIL {path}: good on CPU:0 differs from REFERENCE:0\n')
        self.assertRegex(text, r'\n    at \[\d, \d\]: -?[\d.e-]+, expected -?[\d.e-]+\n')
        self.assertIn('  the first instruction that differs: %s = f32[3,5]{1,0} sine(%g)', text)

    def test_a_mistake_in_a_called_computation(self):
        [report] = self.reports('--isolate', self.write('called.hlo', CALLED),
                                wrong=('sine(', 'cosine('))
        self.assertIn('sine(', report['isolated']['text'])

    def test_a_program_is_reduced(self):
        path = self.write('good.hlo', GOOD)
        wrong = ('sine(', 'cosine(')
        [report] = self.reports('--reduce', path, wrong=wrong)
        self.assertEqual(report['reduced']['file'], 'good.reduced.hlo')
        self.assertLessEqual(report['reduced']['instructions'], 3)
        with open(f'{self.folder}/good.reduced.hlo', encoding='utf-8') as f:
            self.assertIn('sine(', f.read())
        # It fails by itself.
        self.assertEqual(self.reports('good.reduced.hlo', wrong=wrong)[0]['verdict'], 'fail')
        self.assertEqual(self.reports('good.reduced.hlo')[0]['verdict'], 'pass')
        # With arguments from files those that are left are beside it; its first line is the command.
        self.write('x.npy', npy('<f4', (8, 5), floats(*range(40))))
        [report] = self.reports('--reduce=small.hlo', '--inputs=x.npy', path, wrong=wrong)
        self.assertEqual(report['reduced']['file'], 'small.hlo')
        with open(f'{self.folder}/small.hlo', encoding='utf-8') as f:
            first = f.readline().rstrip()
        self.assertRegex(first, '^// differs: kiln-run .*small.hlo$')
        arguments = first.split('kiln-run ')[1].split()
        self.assertEqual(self.reports(*arguments, wrong=wrong)[0]['verdict'], 'fail')

    def test_what_ends_its_process(self):
        good, other = self.write('good.hlo', GOOD), self.write('other.mlir', STABLEHLO)
        first, second = self.reports('--reduce=r.hlo', good, wrong=('sine(', 'abort'))[0], \
            self.reports(good, other, wrong=('sine(', 'abort'))[1]
        self.assertIn('signal 6', first['failure'])
        self.assertEqual(second['verdict'], 'pass')
        self.assertLessEqual(first['reduced']['instructions'], 3)

    def test_what_hangs(self):
        hang, good = self.write('hang.hlo', HANG), self.write('good.hlo', GOOD)
        first, second = self.reports('--deadline=2', hang, good)
        self.assertEqual(first['failure'], 'took longer than 2 s')
        self.assertEqual(second['verdict'], 'pass')
        [report] = self.reports('--deadline=1', good, wrong=('sine(', 'hang'))
        self.assertEqual(report['failure'], 'took longer than 1 s')

    def test_what_cannot_be_read(self):
        damaged = self.write('damaged.hlo', GOOD.replace('negate(t)', 'negate(u)'))
        noise = self.write('noise', b'\xff\x00\x01')
        none = f'{self.folder}/none.hlo'
        for path, reason in ((damaged, 'damaged.hlo:10:'), (noise, 'noise'), (none, 'none.hlo')):
            [report] = self.reports(path)
            self.assertEqual(report['failed_at'], 'reading')
            self.assertIn(reason, report['failure'])
        [report] = self.reports('--input-format=stablehlo', self.write('good.hlo', GOOD))
        self.assertEqual(report['failed_at'], 'reading')

    def test_bounds(self):
        path = self.write('good.hlo', GOOD)
        wrong = ('sine(g)', 'multiply(g, g)')
        self.assertEqual(self.reports(path, wrong=wrong)[0]['verdict'], 'fail')
        for flag in ('--abs-error=100', '--rel_error_bound=200'):
            self.assertEqual(self.reports(flag, path, wrong=wrong)[0]['verdict'], 'pass', flag)
        # Integers are exact, whatever the bounds are.
        integers = self.write('integers.hlo', 'HloModule m\nENTRY e {\n  x = s32[9] parameter(0)\n'
                                              '  ROOT y = s32[9] negate(x)\n}\n')
        [report] = self.reports('--abs-error=100', integers, wrong=('negate(x)', 'not(x)'))
        self.assertEqual(report['results'][0]['wrong'], 9)

    def test_without_a_reference(self):
        path = self.write('good.hlo', GOOD)
        for flag in ('--reference=none', '--reference_platform=', '--run_reference_module=false'):
            [report] = self.reports(flag, path, wrong=('sine(', 'cosine('))
            self.assertEqual(report['verdict'], 'pass')
            self.assertNotIn('reference_ms', report)

    def test_inputs_and_outputs(self):
        path = self.write('m.mlir', STABLEHLO)
        self.write('a.npy', npy('<f4', (4,), floats(1, 2, 3, 4)))
        self.write('b.npy', npy('>f4', (4,), struct.pack('>4f', 10, 20, 30, 40)))
        self.reports('--inputs=a.npy,b.npy', '--outputs=out', path)
        header, data = read_npy(f'{self.folder}/out/result0.npy')
        self.assertIn("'descr': '<f4'", header)
        self.assertEqual(data, floats(11, 22, 33, 44))
        with zipfile.ZipFile(f'{self.folder}/ab.npz', 'w') as archive:
            archive.write(f'{self.folder}/a.npy', 'arr_0.npy')
            archive.write(f'{self.folder}/a.npy', 'arr_1.npy')
        self.reports('--inputs=ab.npz', '--outputs=out', path)
        self.assertEqual(read_npy(f'{self.folder}/out/result0.npy')[1], floats(2, 4, 6, 8))

    def test_written_inputs(self):
        path = self.write('m.mlir', STABLEHLO)
        self.reports('--seed=5', '--write-inputs=in', '--outputs=out', path)
        result = read_npy(f'{self.folder}/out/result0.npy')[1]
        self.reports('--inputs=in/argument0.npy,in/argument1.npy', '--outputs=again', path)
        self.assertEqual(read_npy(f'{self.folder}/again/result0.npy')[1], result)
        self.assertNotEqual(result, floats(0, 0, 0, 0))

    def test_inputs_by_name(self):
        path = self.write('good.hlo', GOOD)
        header = json.dumps({'weights': {'dtype': 'F32', 'shape': [8, 5], 'data_offsets': [0, 160]},
                             'other': {'dtype': 'U8', 'shape': [1], 'data_offsets': [160, 161]}})
        self.write('w.safetensors',
                   struct.pack('<Q', len(header)) + header.encode() + floats(*[1] * 40) + b'x')
        [report] = self.reports('--inputs=w.safetensors', '--print', path)
        self.assertIn('1 arguments are in no file, and were made up', report['notes'])
        self.assertTrue(any('other' in note for note in report['notes']))
        self.assertEqual(set(report['argument'][0]), set('{ }1,'))

    def test_wrong_inputs(self):
        path = self.write('m.mlir', STABLEHLO)
        self.write('a.npy', npy('<f4', (3,), floats(1, 2, 3)))
        self.write('cut.npy', npy('<f4', (4,), floats(1, 2, 3)))
        self.write('b.npy', npy('<f4', (4,), floats(1, 2, 3, 4)))
        for files, reason in (('a.npy', r'a.npy: argument 0 \(.*\): f32\[3\] in the place of f32\[4\]'),
                              ('cut.npy', 'cut.npy: has 12 bytes of elements'),
                              ('b.npy,b.npy,b.npy', '3 arrays in the files.* 2 arguments'),
                              ('m.mlir', 'm.mlir')):
            [report] = self.reports(f'--inputs={files}', path)
            self.assertEqual(report['failed_at'], 'the arguments')
            self.assertRegex(report['failure'], reason)

    def test_arguments_that_are_donated(self):
        [report] = self.reports('--iterations=4', self.write('donated.hlo', DONATED))
        self.assertEqual(report['verdict'], 'pass')

    def test_donated_arguments_change_places(self):
        path = self.write('swap.hlo', SWAPPED)
        self.write('a.npy', npy('<f4', (4,), floats(1, 2, 3, 4)))
        self.write('b.npy', npy('<f4', (4,), floats(5, 6, 7, 8)))
        for platform in ('reference', 'cpu'):
            self.reports(f'--platform={platform}', '--inputs=a.npy,b.npy', '--outputs=out', path)
            self.assertEqual(read_npy(f'{self.folder}/out/result0.npy')[1], floats(5, 6, 7, 8))
            self.assertEqual(read_npy(f'{self.folder}/out/result1.npy')[1], floats(1, 2, 3, 4))

    def test_dumps(self):
        path = self.write('good.hlo', GOOD)
        for flag in ('--dump-to=one', '--xla_dump_to=two'):
            self.reports(flag, path)
            names = os.listdir(f'{self.folder}/{flag[-3:]}')
            self.assertIn('module_0001.good.before_optimizations.txt', names)
            self.assertIn('module_0001.good.cpu_after_optimizations.txt', names)

    def contents(self, name):
        with open(f'{self.folder}/{name}', encoding='utf-8') as file:
            return file.read()

    def test_pictures(self):
        path = self.write('good.hlo', GOOD)
        self.reports('--dot=out', '--svg', '--html=out/page', '--dump-to=out/dump', path)
        self.assertTrue(self.contents('out/good.before.dot').startswith('digraph "good" {'))
        self.assertIn('fusion', self.contents('out/good.after.dot'))
        self.assertIn('>gather</text>', self.contents('good.before.svg'))
        # Times are those of a run, and so of the optimised program.
        self.assertNotRegex(self.contents('good.before.svg'), r'>[\d.]+ [num]s  ')
        self.assertRegex(self.contents('good.after.svg'), r'>[\d.]+ [num]s  [\d.]+ k?B</text>')
        page = self.contents('out/page/good.html')
        for part in ('"name":"before"', '"name":"after"', '"pass": "fusion"', '"is_changed": true'):
            self.assertIn(part, page)
        self.assertIn('module_0001.good.before_optimizations.txt',
                      os.listdir(f'{self.folder}/out/dump'))
        # On the evaluator there are no passes.
        self.reports('--platform=reference', '--svg=none', path)
        self.assertEqual(os.listdir(f'{self.folder}/none'), ['good.before.svg'])
        self.reports('--platform=gpu', '--html=gpu', path)
        self.assertRegex(self.contents('gpu/good.html'), r',\[1,\d+,\d+,\d+\]\]')

    def test_pictures_of_what_fails(self):
        path = self.write('good.hlo', GOOD)
        self.write('file', '')
        [report] = self.reports('--svg=file/in', path)
        self.assertEqual(report['failed_at'], 'pictures')
        self.assertIn('file/in', report['failure'])

    def test_arguments_are_mapped(self):
        # Without the memory for a copy, for the library or the evaluator.
        count = 1 << 27
        path = self.write('sum.hlo', f'''HloModule sum
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }}
ENTRY main {{ w = f32[{count}] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[] reduce(w, zero), dimensions={{0}}, to_apply=add }}
''')
        part = self.write('part.hlo', f'''ENTRY main {{ w = f32[{count}] parameter(0)
  ROOT last = f32[2] slice(w), slice={{[{count - 2}:{count}]}} }}
''')
        header = json.dumps({'w': {'dtype': 'F32', 'shape': [count], 'data_offsets': [0, 4 * count]}})
        header += ' ' * (-len(header) % 8)
        self.write('w.safetensors', struct.pack('<Q', len(header)) + header.encode())
        self.write('w.npy', npy('<f4', (count,), b''))
        limit = 3 * count
        for name in ('w.safetensors', 'w.npy'):
            # Zeros that take no place on the disk.
            file = f'{self.folder}/{name}'
            os.truncate(file, os.path.getsize(file) + 4 * count)
            with open(file, 'r+b') as opened:
                opened.seek(-4, os.SEEK_END)
                opened.write(floats(2.5))
            for flag, program, expected in (('--reference=none', path, floats(2.5)),
                                            ('--reference=reference', part, floats(0, 2.5))):
                [report] = self.reports(flag, f'--inputs={name}', '--outputs=out', program,
                                        most_bytes=limit)
                self.assertEqual(report['verdict'], 'pass', report)
                self.assertEqual(read_npy(f'{self.folder}/out/result0.npy')[1], expected)
        # The limit is low enough: the same number of elements cannot be made up.
        [report] = self.reports('--reference=none', part, most_bytes=limit)
        self.assertEqual(report['verdict'], 'fail')

    def test_names_of_platforms(self):
        path = self.write('good.hlo', GOOD)
        for name, device in (('Host', 'CPU:0'), ('CUDA', 'GPU:0'), ('Interpreter', 'REFERENCE:0')):
            self.assertEqual(self.reports(f'--platform={name}', path)[0]['device'], device)

    def test_usage(self):
        path = self.write('good.hlo', GOOD)
        cases = ((['--platform=tpu', path], "--platform: 'tpu' is none of cpu, cuda, gpu, "),
                 (['--iterations=0', path], '--iterations'), (['--deadline=x', path], '--deadline'),
                 (['--abs-error=-1', path], "--abs-error: '-1' is no number from 0 on"),
                 (['--rel-error=nan', path], "--rel-error: 'nan' is no number from 0 on"),
                 (['--inputs=none.npy', path], '--inputs'), (['--frobnicate', path], '--frobnicate'),
                 (['--input-format=pb', path], '--input-format'), ([], 'files'),
                 (['--outputs=o', path, path], '--outputs'), (['--check', '--save=x', path], '--save'),
                 (['--inputs=good.hlo', path, path], '--inputs'))
        for arguments, name in cases:
            done = self.tool(*arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertEqual(done.stdout, '')
            self.assertIn(name, done.stderr)

    def test_help(self):
        text = self.tool('--help').stdout
        for flag in ('--platform', '--reference', '--input-format', '--abs-error', '--rel-error',
                     '--iterations', '--inputs', '--outputs', '--seed', '--print', '--deadline',
                     '--json', '--isolate', '--reduce', '--dump-to', '--dot', '--svg', '--html'):
            self.assertIn(flag, text)


if __name__ == '__main__':
    unittest.main()
