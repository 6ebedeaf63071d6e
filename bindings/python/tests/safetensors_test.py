"""Files of named arrays: their bytes, what goes through them, and what is refused."""

import json
import os
import struct
import tempfile
import unittest

import numpy

import kiln


def framed(header, data=b''):
    """A file of the format."""
    return struct.pack('<Q', len(header)) + header + data


class SafetensorsTest(unittest.TestCase):

    def setUp(self):
        self.context = kiln.Context(threads=1, gpu='EMULATED')
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, 'file.safetensors')

    def tearDown(self):
        self.context.close()
        self.folder.cleanup()

    def put(self, contents):
        with open(self.path, 'wb') as file:
            file.write(contents)

    def test_round_trip_on_each_device(self):
        arrays = {'w': numpy.arange(6, dtype=numpy.float32).reshape(2, 3),
                  'n\0é': numpy.array([True, False]), 'scalar': numpy.array(-3, numpy.int64),
                  'none': numpy.zeros((0, 2), numpy.complex64)}
        for device in self.context.devices:
            buffers = {name: device.copy(array) for name, array in arrays.items()}
            kiln.safetensors.save(self.path, buffers, {'step': '12', 'é': '\n'})
            loaded = kiln.safetensors.load(self.path, device)
            self.assertEqual(list(loaded), ['scalar', 'none', 'w', 'n\0é'])
            for name, array in arrays.items():
                self.assertEqual(loaded[name].dtype, array.dtype)
                numpy.testing.assert_array_equal(numpy.asarray(loaded[name]), array)
            with kiln.safetensors.File(self.path) as file:
                self.assertEqual(file.metadata, {'step': '12', 'é': '\n'})
                self.assertEqual(file.shape('w'), kiln.Shape('f32', (2, 3)))
                self.assertEqual(file.dtype('scalar'), 'I64')
                self.assertTrue('w' in file and 'x' not in file and len(file) == 4)
                with self.assertRaises(KeyError):
                    file.buffer('x', device)

    def test_bytes(self):
        device = self.context.device()
        kiln.safetensors.save(self.path, {'b': device.copy(numpy.uint8([1])),
                                          'a': device.copy(numpy.float32([2]))}, {'k': 'v'})
        with open(self.path, 'rb') as file:
            contents = file.read()
        length, = struct.unpack('<Q', contents[:8])
        self.assertEqual(length % 8, 0)
        self.assertEqual(json.loads(contents[8:8 + length]), {
            '__metadata__': {'k': 'v'},
            'a': {'dtype': 'F32', 'shape': [1], 'data_offsets': [0, 4]},
            'b': {'dtype': 'U8', 'shape': [1], 'data_offsets': [4, 5]}})
        self.assertEqual(contents[8 + length:], struct.pack('<f', 2) + b'\1')

    def test_arguments_in_the_file(self):
        device = self.context.device()
        array = numpy.arange(1000, dtype=numpy.float32)
        kiln.safetensors.save(self.path, {'x': device.copy(array)})
        graph = self.context.graph()
        x = graph.parameter('f32', [1000])
        graph.set_results(x + 1)
        executable = graph.compile()
        buffers = kiln.safetensors.load(self.path, device)
        result, = executable(buffers['x'])
        numpy.testing.assert_array_equal(numpy.asarray(result), array + 1)
        with self.assertRaisesRegex(kiln.KilnError, 'read-only'):
            executable.run([result], [buffers['x']])
        # The values of an execution that goes on are awaited, and its file is replaced.
        results, _ = executable.start([buffers['x']])
        kiln.safetensors.save(self.path, {'x': results[0]})
        numpy.testing.assert_array_equal(numpy.asarray(buffers['x']), array)
        numpy.testing.assert_array_equal(
            numpy.asarray(kiln.safetensors.load(self.path, device)['x']), array + 1)

    def test_refused(self):
        device = self.context.device()
        for contents in (b'', b'abc', struct.pack('<Q', 1 << 60), framed(b'{'), framed(b'{}', b'x'),
                         framed(b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}', b'x')):
            self.put(contents)
            with self.assertRaises(kiln.KilnError) as raised:
                kiln.safetensors.load(self.path, device)
            self.assertEqual(raised.exception.code, kiln.Code.INVALID_ARGUMENT)
        self.put(framed(b'{"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}}', b'xyz'))
        with kiln.safetensors.File(self.path) as file:
            self.assertEqual(file.dtype('a'), 'F6_E2M3')
            with self.assertRaisesRegex(kiln.KilnError, 'UNIMPLEMENTED.*F6_E2M3'):
                file.shape('a')
        with self.assertRaisesRegex(kiln.KilnError, 'NOT_FOUND'):
            kiln.safetensors.load(self.path + 'x', device)
        with self.assertRaisesRegex(kiln.KilnError, 'UNIMPLEMENTED.*c128'):
            kiln.safetensors.save(self.path, {'z': device.zeros('c128', [1])})
        self.assertEqual(os.listdir(self.folder.name), ['file.safetensors'])


if __name__ == '__main__':
    unittest.main()
