"""Executables as files and bytes."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

import kiln


def compiled(context, device):
    graph = context.graph('saved')
    x = graph.parameter('f32', [4, 4])
    weights = graph.constant(numpy.arange(16, dtype=numpy.float32).reshape(4, 4))
    graph.set_results(x @ weights + 1.0)
    return graph.compile(device)


ARGUMENT = numpy.linspace(-1, 1, 16, dtype=numpy.float32).reshape(4, 4)

LOAD = '''
import sys, numpy, kiln
with kiln.Context(threads=1, gpu='EMULATED') as context:
    with context.load(sys.argv[1], context.device(sys.argv[2])) as executable:
        x = numpy.linspace(-1, 1, 16, dtype=numpy.float32).reshape(4, 4)
        print(numpy.asarray(executable(x)[0]).tobytes().hex())
'''


class SavedTest(unittest.TestCase):

    def setUp(self):
        self.context = kiln.Context(threads=1, gpu='EMULATED')
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, 'program')

    def tearDown(self):
        self.context.close()
        self.folder.cleanup()

    def test_round_trip_on_each_device(self):
        for device in self.context.devices:
            executable = compiled(self.context, device)
            expected = numpy.asarray(executable(ARGUMENT)[0])
            executable.save(pathlib.Path(self.path))
            data = executable.serialize()
            with open(self.path, 'rb') as file:
                self.assertEqual(file.read(), data)
            for loaded in (self.context.load(self.path, device),
                           self.context.deserialize(data, device)):
                self.assertEqual(loaded.device.name, device.name)
                self.assertEqual(loaded.fingerprint, executable.fingerprint)
                self.assertEqual(len(loaded.fingerprint), 64)
                self.assertEqual(loaded.result_shapes, executable.result_shapes)
                numpy.testing.assert_array_equal(numpy.asarray(loaded(ARGUMENT)[0]), expected)
                self.assertEqual(loaded.serialize(), data)
            told = subprocess.run([sys.executable, '-c', LOAD, self.path, device.name], check=True,
                                  stdout=subprocess.PIPE, universal_newlines=True)
            self.assertEqual(told.stdout.strip(), expected.tobytes().hex())

    def test_what_is_no_program_is_refused(self):
        def refuses(code, text, function, *arguments):
            with self.assertRaisesRegex(kiln.KilnError, text) as caught:
                function(*arguments)
            self.assertEqual(caught.exception.code, code)

        refuses(kiln.Code.NOT_FOUND, 'program', self.context.load, self.path)
        with open(self.path, 'wb') as file:
            file.write(b'something else')
        refuses(kiln.Code.INVALID_ARGUMENT, 'no saved program', self.context.load, self.path)
        executable = compiled(self.context, self.context.device())
        data = executable.serialize()
        refuses(kiln.Code.INVALID_ARGUMENT, 'damaged', self.context.deserialize, data[:-1])
        refuses(kiln.Code.FAILED_PRECONDITION, 'compiled for', self.context.deserialize, data,
                self.context.device('REFERENCE:0'))
        refuses(kiln.Code.INVALID_ARGUMENT, 'no regular file', executable.save, self.folder.name)

    def test_functions_are_found_by_name(self):
        graph = self.context.graph('calls')
        graph.set_results(graph.custom_call('test.double', [graph.parameter('f32', [2])],
                                            [('f32', [2])]))

        def double(call):
            numpy.asarray(call.results[0])[...] = 2 * numpy.asarray(call.operands[0])

        self.context.register_call('test.double', double)
        graph.compile().save(self.path)
        with kiln.Context(threads=1) as other:
            with self.assertRaisesRegex(kiln.KilnError, 'test.double') as caught:
                other.load(self.path)
            self.assertEqual(caught.exception.code, kiln.Code.NOT_FOUND)
            other.register_call('test.double', double)
            result, = other.load(self.path)(numpy.array([1, 2], numpy.float32))
            self.assertEqual(numpy.asarray(result).tolist(), [2, 4])


if __name__ == '__main__':
    unittest.main()
