"""Arrays by DLPack's protocol, to NumPy and from it, and capsules of which nothing comes."""

import ctypes
import gc
import sys
import unittest

import numpy

import kiln
from kiln import _dlpack
from kiln_test import aligned

HAS_DLPACK = hasattr(numpy, 'from_dlpack')


def capsule_name(capsule):
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ('PyCapsule_GetName', ctypes.pythonapi))
    return name(capsule)


class Producer:
    """An array of another library's, which hands out what it is told to."""

    def __init__(self, buffer, takes_version, device=(1, 0)):
        self.buffer, self.takes_version, self.device = buffer, takes_version, device
        self.asked = None

    def __dlpack__(self, **arguments):
        if 'max_version' in arguments and not self.takes_version:
            raise TypeError('unexpected keyword')
        self.asked = arguments
        return self.buffer.__dlpack__(max_version=arguments.get('max_version'))

    def __dlpack_device__(self):
        return self.device


class DlpackTest(unittest.TestCase):

    def setUp(self):
        self.context = kiln.Context(threads=2, gpu='EMULATED')
        self.cpu = self.context.device()

    def tearDown(self):
        gc.collect()
        self.assertEqual(self.context.device('GPU:0').memory.live_bytes, 0)
        self.context.close()

    @unittest.skipUnless(HAS_DLPACK, 'an old NumPy')
    def test_to_numpy(self):
        for device in self.context.devices:
            array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
            buffer = device.copy(array)
            self.assertEqual(buffer.__dlpack_device__(), (1, 0))
            view = numpy.from_dlpack(buffer)
            address = buffer.device_address
            buffer.close()
            gc.collect()
            self.assertEqual(view.ctypes.data, address)
            self.assertEqual(view.tolist(), array.tolist())
            self.assertEqual(view.dtype, numpy.float32)

    @unittest.skipUnless(HAS_DLPACK, 'an old NumPy')
    def test_types_of_numpy(self):
        for kind in (numpy.int8, numpy.uint16, numpy.int64, numpy.float16, numpy.float64,
                     numpy.complex64, numpy.complex128):
            array = numpy.arange(5).astype(kind)
            self.assertEqual(numpy.from_dlpack(self.cpu.copy(array)).dtype, array.dtype)
            buffer = self.cpu.from_dlpack(array)
            self.assertEqual(numpy.asarray(buffer).dtype, array.dtype)
            self.assertEqual(numpy.asarray(buffer).tolist(), array.tolist())

    @unittest.skipUnless(HAS_DLPACK, 'an old NumPy')
    def test_from_numpy(self):
        array = aligned((3, 4))
        array[:] = numpy.arange(12).reshape(3, 4)
        for name in ('CPU:0', 'GPU:0'):
            buffer = self.context.device(name).from_dlpack(array)
            self.assertEqual(buffer.shape, kiln.Shape('f32', (3, 4), 48))
            self.assertEqual(buffer.device_address, array.ctypes.data)
            self.assertEqual(buffer.tobytes(), array.tobytes())
            transposed = self.context.device(name).from_dlpack(array.T)
            self.assertNotEqual(transposed.device_address, array.ctypes.data)
            self.assertEqual(transposed.tobytes(), array.T.tobytes())
            part = self.context.device(name).from_dlpack(array[1:, ::2])
            self.assertEqual(part.tobytes(), array[1:, ::2].tobytes())

    @unittest.skipUnless(HAS_DLPACK, 'an old NumPy')
    def test_the_array_lives_as_long_as_the_buffer(self):
        array = aligned(16)
        count = sys.getrefcount(array)
        buffer = self.cpu.from_dlpack(array)
        self.assertGreater(sys.getrefcount(array), count)
        buffer.close()
        self.assertEqual(sys.getrefcount(array), count)
        # Nor does a failure keep it.
        with self.assertRaises(Exception):
            self.cpu.from_dlpack(numpy.zeros(3, 'datetime64[s]'))
        executable_input = self.cpu.from_dlpack(array)
        graph = self.context.graph()
        graph.set_results(graph.parameter('f32', [16]) + 1.0)
        results, event = graph.compile().start([executable_input])
        executable_input.close()
        event.wait()
        self.assertEqual(numpy.asarray(results[0]).tolist(), [1] * 16)
        self.assertEqual(sys.getrefcount(array), count)

    def test_both_forms(self):
        for takes_version, name in ((True, b'dltensor_versioned'), (False, b'dltensor')):
            source = Producer(self.cpu.copy(numpy.arange(4)), takes_version)
            capsule = source.buffer.__dlpack__(max_version=(1, 3) if takes_version else None)
            self.assertEqual(capsule_name(capsule), name)
            taken = self.cpu.from_dlpack(capsule)
            self.assertEqual(capsule_name(capsule), b'used_' + name)
            self.assertEqual(numpy.asarray(taken).tolist(), [0, 1, 2, 3])
            with self.assertRaisesRegex(TypeError, 'used'):
                self.cpu.from_dlpack(capsule)
            again = self.cpu.from_dlpack(source)
            self.assertEqual(again.address, source.buffer.address)
            self.assertEqual(source.asked, {'max_version': (1, 0)} if takes_version else {})

    def test_what_is_read_only_is_not_written(self):
        buffer = self.cpu.from_dlpack(Producer(self.cpu.zeros('f32', [4]), True))
        graph = self.context.graph()
        graph.set_results(graph.parameter('f32', [4]) + 1.0)
        executable = graph.compile()
        with self.assertRaisesRegex(kiln.KilnError, 'read-only memory'):
            executable.run([numpy.zeros(4, numpy.float32)], [buffer])

    def test_streams_of_gpus(self):
        source = Producer(self.cpu.zeros('f32', [4]), False, (2, 0))
        self.cpu.from_dlpack(source)
        self.assertEqual(source.asked, {'stream': 1})
        graph = self.context.graph()
        graph.set_results(graph.parameter('f32', [4]) + 1.0)
        executable = graph.compile()
        for run in (executable.run, executable.start):
            with self.assertRaisesRegex(kiln.KilnError, 'stream is set'):
                run([numpy.zeros(4, numpy.float32)], stream=1)

    def test_capsules_that_nobody_takes(self):
        gpu = self.context.device('GPU:0')
        for version in (None, (0, 8), (1, 0)):
            buffer = gpu.zeros('f32', [1000])
            capsule = buffer.__dlpack__(max_version=version)
            buffer.close()
            self.assertGreaterEqual(gpu.memory.live_bytes, 4000)
            del capsule
            self.assertEqual(gpu.memory.live_bytes, 0)

    def test_copies_and_other_devices(self):
        buffer = self.cpu.copy(numpy.arange(4))
        copy = self.cpu.from_dlpack(buffer.__dlpack__(copy=True, dl_device=(1, 0)))
        self.assertNotEqual(copy.address, buffer.address)
        self.assertEqual(numpy.asarray(copy).tolist(), [0, 1, 2, 3])
        with self.assertRaises(BufferError):
            buffer.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(TypeError):
            self.cpu.from_dlpack(numpy.arange)
        with self.assertRaisesRegex(kiln.KilnError, 's4'):
            self.cpu.zeros('s4', [3]).__dlpack__()
        self.assertEqual(_dlpack.device_of(self.context.device('GPU:0')), (1, 0))


if __name__ == '__main__':
    unittest.main()
