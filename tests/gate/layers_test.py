#!/usr/bin/python3
"""usage: layers_test.py

The layer check finds what it is there to find.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layers

TABLE = """
| room | holds | may include | libraries |
|---|---|---|---|
| `include/kiln` | the C ABI | | |
| `base` | basics | | |
| `frame` | plain C | | |
| `ir` | modules | `base` | |
| `codegen` | code | `ir`, `frame` | LLVM |
| `runtime` | running | `ir`, `frame` | |
| `runtime/lib` | what code calls | `base`, `frame` | Eigen |
| `device` | machines | `runtime`, `codegen`; not `ir` | |
| `capi` | the door | all above | |
| `tools` | tools | `include/kiln` | CLI11 |
| `tools/opt` | opt | `ir` | CLI11 |

| room | another table |
"""


class Layers(unittest.TestCase):
    rows = layers.read_table(TABLE)

    def errors(self, path, *includes):
        return layers.check_file(path, '\n'.join('#include ' + i for i in includes), self.rows)

    def test_plugin(self):
        def errors(*includes):
            return layers.check_plugin_file('p.cc', '\n'.join('#include ' + i for i in includes))
        self.assertEqual(errors('"plugin/a.h"', '"kiln/buffer.h"', '<vector>'), [])
        self.assertIn('base/status.h', errors('"base/status.h"')[0])
        self.assertIn('llvm/IR', errors('<llvm/IR/Module.h>')[0])

    def test_table(self):
        self.assertEqual(len(self.rows), 11)
        self.assertEqual(layers.table_errors(self.rows), [])
        upward = layers.read_table(TABLE.replace('| modules | `base`', '| modules | `runtime`'))
        self.assertEqual(len(layers.table_errors(upward)), 1)

    def test_allowed(self):
        self.assertEqual(self.errors('codegen/a.cc', '"codegen/a.h"', '"ir/b.h"', '"base/c.h"',
                                     '"frame/frame.h"', '<llvm/IR/Module.h>', '<vector>'), [])
        self.assertEqual(self.errors('runtime/a.cc', '"runtime/lib/b.h"'), [])
        self.assertEqual(self.errors('runtime/lib/a.cc', '<Eigen/Core>', '"runtime/lib/b.h"'), [])
        self.assertEqual(self.errors('capi/a.cc', '"runtime/lib/b.h"', '"kiln/kiln.h"'), [])
        self.assertEqual(self.errors('tools/opt.cc', '"base/a.h"', '<CLI/CLI.hpp>'), [])

    def test_kinds(self):
        text = 'if (target.kind == target::Kind::kGpu) return;'
        self.assertEqual(len(layers.check_file('codegen/a.cc', text, self.rows)), 1)
        self.assertEqual(layers.check_file('device/a.cc', text, self.rows), [])

    def test_rejected(self):
        for path, include in [
                ('ir/a.cc', '"codegen/a.h"'), ('base/a.cc', '"ir/a.h"'),
                ('ir/a.cc', '"llvm/IR/Module.h"'), ('ir/a.cc', '<llvm/IR/Module.h>'),
                ('codegen/a.cc', '<Eigen/Core>'), ('frame/frame.h', '"base/status.h"'),
                ('runtime/lib/a.cc', '"runtime/device.h"'), ('runtime/lib/a.cc', '"ir/a.h"'),
                ('device/a.cc', '"ir/a.h"'), ('tools/run.cc', '"ir/a.h"'), ('ir/a.cc', '"kiln/kiln.h"'),
                ('ir/a.cc', '"neighbour.h"'), ('attic/a.cc', '<vector>')]:
            self.assertEqual(len(self.errors(path, include)), 1, (path, include))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
