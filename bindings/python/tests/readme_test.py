"""The Python blocks of README.md run, one after the other."""

import contextlib
import io
import os
import re
import unittest

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../README.md')


class ReadmeTest(unittest.TestCase):

    def test_blocks(self):
        with open(README) as file:
            first, *others = re.findall(r'^```python\n(.*?)^```', file.read(),
                                        re.MULTILINE | re.DOTALL)
        names = {}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(first, names)  # pylint: disable=exec-used
        self.assertEqual(printed.getvalue(), '1.0\n')
        # The others are pieces of a program that has a context and a graph.
        names['context'] = names['kiln'].Context()
        names['graph'] = names['context'].graph()
        names['x'] = names['graph'].parameter('f32', [1000])
        self.assertGreater(len(others), 0)
        with contextlib.redirect_stdout(printed):
            for block in others:
                exec(block, names)  # pylint: disable=exec-used
        self.assertEqual(printed.getvalue(), '1.0\n0.0\n')


if __name__ == '__main__':
    unittest.main()
