#!/usr/bin/python3
"""usage: character_transformer.py --program PROGRAM --text PAGE

Trains docs/examples/character_transformer.c on a page of the manual: at once, and in two runs with
a checkpoint between them. All files that they leave must be the same bytes.
"""

import argparse
import csv
import os
import pty
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

STEPS, STOP = 300, 130
FILES = ['loss.csv', 'loss.svg', 'training.safetensors']
args = None


def train(*arguments):
    return subprocess.run([args.program, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)


def on_terminal(terminal, *arguments):
    ours, theirs = terminal
    child = subprocess.Popen([args.program, *map(str, arguments)], stdout=theirs)
    os.close(theirs)
    text = b''
    try:
        while piece := os.read(ours, 4096):
            text += piece
    except OSError:  # what Linux says at the end
        pass
    os.close(ours)
    return child.wait(), text


class Test(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.whole = f'{cls.scratch.name}/whole'
        cls.result = train(args.text, cls.whole, STEPS)

    def losses(self, folder):
        with open(f'{folder}/loss.csv', newline='') as f:
            rows = list(csv.reader(f))
        self.assertEqual(rows[0], ['step', 'loss'])
        self.assertEqual([int(row[0]) for row in rows[1:]], list(range(1, len(rows))))
        return [float(row[1]) for row in rows[1:]]

    def test_learns(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual(self.result.stderr, '')
        self.assertEqual(sorted(os.listdir(self.whole)), FILES)
        losses = self.losses(self.whole)
        self.assertEqual(len(losses), STEPS)
        # Single letters of the page have an entropy of 3.3 nats, pairs one of 2.4.
        self.assertLess(sum(losses[-20:]) / 20, 2.4)
        lines = self.result.stdout.splitlines()
        self.assertEqual(len(lines), 10)
        for line in lines:
            self.assertRegex(line, r'^step \d+: loss \d\.\d{3}  \d+ tokens/s  ETA \d+ s$')

    def test_picture(self):
        root = xml.etree.ElementTree.parse(f'{self.whole}/loss.svg').getroot()
        svg = '{http://www.w3.org/2000/svg}'
        self.assertEqual(root.tag, svg + 'svg')
        lines = root.findall(svg + 'polyline')
        self.assertEqual(len(lines), 2)
        for line in lines:
            points = [tuple(map(float, p.split(','))) for p in line.get('points').split()]
            self.assertEqual(len(points), STEPS)
            self.assertEqual([x for x, _ in points], sorted(x for x, _ in points))
            self.assertGreater(points[-1][1], points[0][1])  # the loss falls, y grows downwards

    def interrupted(self, name):
        """A folder with the checkpoint of an interrupted run."""
        folder = f'{self.scratch.name}/{name}'
        result = train(args.text, folder, STEPS, STOP)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.losses(folder)), STOP)
        return folder

    def has_the_same_files(self, folder):
        for name in FILES:
            with open(f'{self.whole}/{name}', 'rb') as a, open(f'{folder}/{name}', 'rb') as b:
                self.assertTrue(a.read() == b.read(), f'{name} differs')

    def test_same_bits_after_an_interruption(self):
        folder = self.interrupted('parts')
        result = train(args.text, folder, STEPS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('training.safetensors: goes on', result.stdout)
        self.has_the_same_files(folder)

    def test_on_a_terminal(self):
        folder = self.interrupted('terminal')
        try:
            terminal = pty.openpty()
        except OSError as error:
            self.skipTest(f'no pseudo-terminal: {error}')
        status, text = on_terminal(terminal, args.text, folder, STEPS)
        self.assertEqual(status, 0)
        self.assertIn(b'training.safetensors: goes on', text)
        self.assertRegex(text, rb'\rtraining +\[#+ +\] 17/170  loss \d\.\d{3}  \d+ tokens/s  ETA \d+ s')
        self.has_the_same_files(folder)

    def test_refused(self):
        out = f'{self.scratch.name}/refused'
        for arguments in ((args.text, out), ('/not/there', out, 5), (os.devnull, out, 5),
                          (args.text, out, 0), (args.text, out, 5, 6)):
            result = train(*arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn('error: ', result.stderr)
        self.assertFalse(os.path.exists(out))


def main():
    global args
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--text', required=True)
    args, rest = parser.parse_known_args()
    unittest.main(argv=['character_transformer.py', *rest])


if __name__ == '__main__':
    main()
