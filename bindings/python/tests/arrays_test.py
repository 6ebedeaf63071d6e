"""Arrays of NumPy's and of ml_dtypes' go in and come out as what they are."""

import subprocess
import sys
import unittest

import numpy

import kiln
from kiln._dtypes import _ML_DTYPES

try:
    import ml_dtypes
except Exception as error:  # pylint: disable=broad-except
    ml_dtypes = None
    REASON = 'ml_dtypes: {}'.format(error)
else:
    REASON = ''


class ArraysTest(unittest.TestCase):

    def setUp(self):
        self.context = kiln.Context(threads=1)
        self.cpu = self.context.device()

    def tearDown(self):
        self.context.close()

    @unittest.skipIf(ml_dtypes is None, REASON)
    def test_types_of_ml_dtypes(self):
        for name, long in _ML_DTYPES.items():
            if not hasattr(ml_dtypes, long):
                continue
            with self.subTest(name=name):
                kind = numpy.dtype(getattr(ml_dtypes, long))
                numbers = numpy.array([1, 0, 1, 2, 1] if name == 'u2' else [1, -2, 1, -1, 0]
                                      if name[0] == 's' else [1, 2, 1, 4, 2])
                array = numbers.astype(kind)
                for source in (array, array[::-1], array.reshape(5, 1)):
                    buffer = self.cpu.copy(source)
                    self.assertEqual(buffer.shape, kiln.Shape(name, source.shape))
                    back = numpy.asarray(buffer)
                    self.assertEqual(back.dtype, kind)
                    self.assertEqual(back.astype(float).tolist(), source.astype(float).tolist())
                    self.assertEqual(buffer.tolist(), source.tolist())
                self.assertEqual((kiln.DType(kind), kiln.DType(name).dtype), (name, kind))
                self.assertEqual(kiln.empty((2, 3), name).dtype, kind)
                graph = self.context.graph()
                x = graph.parameter(kind, [5])
                graph.set_results(x, x.astype('f32'), graph.constant(array))
                same, wide, constant = graph.compile()(array)
                self.assertEqual(numpy.asarray(same).tobytes(), numpy.asarray(constant).tobytes())
                self.assertEqual(numpy.asarray(same).astype(float).tolist(), numbers.tolist())
                self.assertEqual(numpy.asarray(constant).dtype, kind)
                self.assertEqual(wide.tolist(), numbers.tolist())
                self.assertEqual(float(self.cpu.copy(array[:1])), 1)

    @unittest.skipIf(ml_dtypes is None, REASON)
    def test_values_with_arrays_of_ml_dtypes(self):
        graph = self.context.graph()
        x = graph.parameter('bf16', [3])
        array = numpy.array([1, 2, 3]).astype(ml_dtypes.bfloat16)
        graph.set_results(x + array, array * x, x * ml_dtypes.bfloat16(0.5),
                          numpy.maximum(array, x))
        results = graph.compile()(array)
        self.assertEqual([r.tolist() for r in results],
                         [[2, 4, 6], [1, 4, 9], [0.5, 1, 1.5], [1, 2, 3]])
        self.assertEqual({r.dtype.dtype for r in results}, {array.dtype})

        def double(call):
            call.results[0].__array__()[...] = 2 * numpy.asarray(call.operands[0])

        self.context.register_call('double', double)
        graph = self.context.graph()
        y = graph.parameter('bf16', [3])
        graph.set_results(graph.custom_call('double', [y], [('bf16', [3])]))
        self.assertEqual(graph.compile()(array)[0].tolist(), [2, 4, 6])
        # Integers of less than a byte have other bytes here: they are copied, and not borrowed.
        small = numpy.array([-1, 3]).astype(ml_dtypes.int4)
        with self.assertRaisesRegex(ValueError, 'copy it first'):
            self.cpu.borrow(small)
        self.assertEqual(self.cpu.copy(small).tobytes(), b'\xff\x03')
        self.assertEqual(int(self.cpu.copy(small)[0]), -1)

    def test_without_ml_dtypes(self):
        program = '\n'.join((
            'import sys',
            'sys.modules["ml_dtypes"] = None',
            'import numpy, kiln',
            'cpu = kiln.Context(threads=1).device()',
            'bits = numpy.array([0x3f80, 0x4000], numpy.uint16)',
            'buffer = cpu.copy(bits, dtype="bf16")',
            'array = numpy.asarray(buffer)',
            'assert array.dtype == "V2" and array.view("u2").tolist() == bits.tolist()',
            'assert numpy.asarray(cpu.zeros("f8e5m2", [2])).dtype == "V1"',
            'try:',
            '    kiln.empty(2, "bf16")',
            'except TypeError as error:',
            '    print(error)',
            'try:',
            '    float(cpu.zeros("bf16"))',
            'except TypeError as error:',
            '    print(error)'))
        printed = subprocess.run([sys.executable, '-c', program], stdout=subprocess.PIPE,
                                 check=True).stdout
        self.assertEqual(printed,
                         b'NumPy has bf16 from the package ml_dtypes, which is not there\n' * 2)

    def test_without_numpy(self):
        program = '\n'.join((
            'import sys, array',
            'sys.modules["numpy"] = sys.modules["ml_dtypes"] = None',
            'import kiln',
            'context = kiln.Context(threads=1)',
            'graph = context.graph()',
            'x = graph.parameter("f32", [3])',
            'graph.set_results(x * 2 + 1, x.sum(), x[0] > 0.5)',
            'executable = graph.compile()',
            'numbers = array.array("f", [1, 2, 3])',
            'for argument in numbers, context.device().copy(numbers):',
            '    triple, total, truth = executable(argument)',
            '    triple = memoryview(triple.tobytes()).cast("f").tolist()',
            '    print(triple, float(total), bool(truth))'))
        printed = subprocess.run([sys.executable, '-c', program], stdout=subprocess.PIPE,
                                 check=True).stdout
        self.assertEqual(printed, b'[3.0, 5.0, 7.0] 6.0 True\n' * 2)

    def test_aligned_arrays(self):
        for shape in ((), 5, (2, 3), (0, 4), [7]):
            for dtype in (numpy.float32, 'f64', 'int8', 'pred', complex):
                array = kiln.empty(shape, dtype)
                like = numpy.empty(shape, kiln.DType(dtype).dtype)
                self.assertEqual((array.shape, array.dtype), (like.shape, like.dtype))
                self.assertTrue(array.flags.c_contiguous and array.flags.writeable)
                if array.size:
                    self.assertEqual(array.ctypes.data % kiln.ALIGNMENT, 0)
        self.assertEqual(kiln.empty(3).dtype, numpy.float64)
        self.assertEqual(kiln.zeros((2, 2), 's32').tolist(), [[0, 0], [0, 0]])
        self.assertEqual(kiln.full(2, 7, 's8').tolist(), [7, 7])
        like = kiln.empty_like(numpy.zeros((2, 3), numpy.int16))
        self.assertEqual((like.shape, like.dtype), ((2, 3), numpy.int16))
        self.assertEqual(kiln.empty_like(self.cpu.zeros('f32', [4])).shape, (4,))
        for wrong in (lambda: kiln.empty(-1), lambda: kiln.empty(2, 'f33')):
            self.assertRaises(ValueError, wrong)
        buffer = self.cpu.borrow(kiln.full(8, 3, 'f32'))
        self.assertEqual(buffer.address % kiln.ALIGNMENT, 0)

    def test_numbers_and_lists(self):
        self.assertEqual(self.cpu.copy([[1, 2], [3, 4]], 'f32').shape, kiln.Shape('f32', (2, 2)))
        self.assertEqual(self.cpu.copy((1, 2)).dtype, 's64')
        self.assertEqual(self.cpu.copy(True).item(), True)
        graph = self.context.graph()
        x = graph.parameter('f32', [2])
        graph.set_results(x * graph.constant([2, 3], 'f32') + graph.constant(0.5, numpy.float32))
        self.assertEqual(graph.compile()(numpy.ones(2, 'f4'))[0].tolist(), [2.5, 3.5])
        for wrong in ([1, [2, 3]], ['a'], [None]):
            with self.assertRaises((ValueError, TypeError)):
                self.cpu.copy(wrong)
        with self.assertRaises(TypeError):
            self.cpu.borrow([1, 2])

    def test_numpy_functions_of_buffers(self):
        array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        buffer = self.cpu.copy(array)
        self.assertEqual(numpy.sum(buffer), 15)
        self.assertEqual(numpy.add(buffer, 1).tolist(), (array + 1).tolist())
        self.assertEqual((array + buffer).tolist(), (array * 2).tolist())
        self.assertEqual(numpy.concatenate([buffer, buffer]).shape, (4, 3))
        self.assertTrue(numpy.array_equal(buffer, array))
        self.assertEqual(numpy.asarray(buffer).ctypes.data, buffer.address)
        self.assertNotEqual(numpy.array(buffer).ctypes.data, buffer.address)
        self.assertEqual(numpy.asarray(buffer, numpy.float64).dtype, numpy.float64)
        with self.assertRaises(ValueError):
            buffer.__array__(numpy.float64, copy=False)
        self.assertEqual(buffer.__array__(copy=False).ctypes.data, buffer.address)
        self.assertNotEqual(buffer.__array__(copy=True).ctypes.data, buffer.address)
        self.assertEqual((buffer == array).tolist(), [[True] * 3] * 2)
        self.assertEqual((buffer < 3).tolist(), (array < 3).tolist())
        self.assertFalse((buffer != buffer).any())
        self.assertEqual((len(buffer), buffer.ndim, buffer.size, buffer.nbytes), (2, 2, 6, 24))
        self.assertEqual(buffer.dtype, numpy.float32)
        self.assertEqual([row.tolist() for row in buffer], array.tolist())
        self.assertEqual(buffer[1, ::2].tolist(), [3, 5])
        self.assertEqual({buffer: 1}[buffer], 1)
        self.assertEqual(self.cpu.copy(buffer).tolist(), array.tolist())

    def test_buffers_of_one_element(self):
        for dtype, number in (('f32', 0.5), ('f64', -2.25), ('f16', 1.5), ('s64', -2 ** 62),
                              ('u8', 200), ('pred', True), ('c64', 1 + 2j), ('c128', -1j)):
            buffer = self.cpu.copy(numpy.array(number, kiln.DType(dtype).dtype))
            self.assertEqual(buffer.item(), number)
            self.assertEqual(type(buffer.item()), type(number))
            self.assertEqual(complex(buffer), number)
            self.assertEqual(bool(buffer), bool(number))
        self.assertEqual(float(self.cpu.copy(numpy.array([[0.25]], 'f4'))), 0.25)
        self.assertEqual(int(self.cpu.copy(numpy.array(7.0, 'f4'))), 7)
        self.assertEqual([10, 20, 30][self.cpu.copy(numpy.array(1, 'i4'))], 20)
        for wrong in (lambda: float(self.cpu.zeros('f32', [2])),
                      lambda: float(self.cpu.zeros('c64')), lambda: len(self.cpu.zeros('f32')), lambda: [1][self.cpu.zeros('f32')],
                      lambda: bool(self.cpu.zeros('f32', [0]))):
            with self.assertRaises((TypeError, ValueError)):
                wrong()

    def test_memory_that_is_not_the_hosts(self):
        with kiln.Context(threads=1, gpu='EMULATED') as context:
            array = numpy.arange(5, dtype=numpy.float32)
            buffer = context.device('GPU:0').copy(array)
            self.assertEqual(numpy.asarray(buffer).tolist(), array.tolist())
            self.assertEqual(numpy.sum(buffer), 10)


if __name__ == '__main__':
    unittest.main()
