"""The structs of the package are laid out as the compiler lays out those of the headers."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from kiln import _structs

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../include')
STRUCTS = {struct.__doc__: struct for struct in vars(_structs).values()
           if isinstance(struct, type) and issubclass(struct, ctypes.Structure)
           and (struct.__doc__ or '').startswith('kiln_')}


def declared_structs():
    """The structs that the library's headers define: those of programs compiled ahead of time are
    not among them.
    """
    names = set()
    with open(os.path.join(INCLUDE, 'kiln', 'kiln.h')) as file:
        headers = re.findall(r'^#include "(kiln/\w+\.h)"', file.read(), re.MULTILINE)
    for header in headers:
        with open(os.path.join(INCLUDE, header)) as file:
            names.update(re.findall(r'^typedef struct (\w+) \{', file.read(), re.MULTILINE))
    return names


@unittest.skipUnless(shutil.which('cc'), 'no C compiler')
class LayoutTest(unittest.TestCase):

    def test_every_struct_is_there(self):
        self.assertEqual(set(STRUCTS), declared_structs())

    def test_offsets_and_sizes(self):
        expected = []
        prints = []
        for name, struct in sorted(STRUCTS.items()):
            expected.append('{} {}'.format(name, ctypes.sizeof(struct)))
            prints.append('printf("{0} %zu\\n", sizeof({0}));'.format(name))
            for field, _ in struct._fields_:
                place = getattr(struct, field)
                expected.append('{}.{} {} {}'.format(name, field, place.offset, place.size))
                prints.append('printf("{0}.{1} %zu %zu\\n", offsetof({0}, {1}), '
                              'sizeof((({0}*)0)->{1}));'.format(name, field))
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, 'layout.c')
            with open(source, 'w') as file:
                file.write('#include <kiln/kiln.h>\n#include <stdio.h>\nint main(void) {{\n{}\n'
                           'return 0;\n}}\n'.format('\n'.join(prints)))
            program = os.path.join(folder, 'layout')
            subprocess.run(['cc', '-std=c99', '-I' + INCLUDE, source, '-o', program], check=True)
            printed = subprocess.run([program], check=True, stdout=subprocess.PIPE,
                                     universal_newlines=True).stdout
        self.assertEqual(printed.split('\n')[:-1], expected)


if __name__ == '__main__':
    unittest.main()
