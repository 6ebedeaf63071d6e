#!/usr/bin/python3
"""usage: names_test.py

The check of names finds what it is there to find.
"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names


class Names(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory()
        for path in ['src/ir/ir.h', 'src/ir/text_print.cc', 'tests/unit/ir/names_test.cc',
                     'src/kernel/schedule/cpu/nest.cc']:
            os.makedirs(os.path.join(self.root.name, os.path.dirname(path)), exist_ok=True)
            open(os.path.join(self.root.name, path), 'w').close()
        self.tree = names.Tree(self.root.name)

    def tearDown(self):
        self.root.cleanup()

    def test_paths(self):
        for quoted in ['ir/ir.h', 'ir.h', 'text_print.cc', 'ir/{ir.h,text_print.cc}', '_test.cc',
                       'tests/unit', 'src/kernel/schedule/cpu/', 'ir/text_*.cc', 'cuda.h',
                       'module_0001.NAME.txt', 'kiln_frame', 'a + b', 'std::vector']:
            self.assertEqual(names.path_errors('page', f'See `{quoted}`.', self.tree), [], quoted)
        for quoted in ['ir/gone.h', 'gone.cc', 'kernel/ir.h', 'ir/{ir.h,gone.cc}', 'tests/attic',
                       'ir/gone_*.cc', '_gone.py']:
            errors = names.path_errors('page', f'See `{quoted}`.', self.tree)
            self.assertEqual(len(errors), 1, quoted)

    def test_comments(self):
        for comment in ['// see ir/ir.h', '/* as text_print.cc */', 'int x; // (ir.h)']:
            self.assertEqual(names.comment_errors('a.cc', comment, self.tree), [], comment)
        for comment in ['// see dump.h', '/* as\n * kernel/ir.h */']:
            self.assertEqual(len(names.comment_errors('a.cc', comment, self.tree)), 1, comment)
        self.assertEqual(names.comment_errors('a.cc', '#include "gone.h"', self.tree), [])

    def test_rooms(self):
        rows = '| `ir` | x |\n| `kernel` | y |\n'
        self.assertEqual(names.room_errors(rows, self.tree), [])
        self.assertEqual(len(names.room_errors(rows + '| `grad` | z |\n', self.tree)), 1)
        self.assertEqual(len(names.room_errors('| `ir` | x |\n', self.tree)), 1)

    def test_tools(self):
        self.assertEqual(names.tool_errors('page', 'Run `kiln-run --help`.', {'kiln-run'}), [])
        self.assertEqual(len(names.tool_errors('page', 'Run `kiln-walk`.', {'kiln-run'})), 1)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
