"""Networks for images on ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


class Model:
    """A model under construction. Layers are nodes of its graph."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f'constant{len(self.constants)}'
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op, *inputs, **attributes):
        name = f'value{len(self.nodes)}'
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def activated(self, x, kind):
        """A layer's result."""
        if kind == 'relu6':
            return self.node('Clip', x, *(self.constant(np.array(limit, np.float32)) for limit in (0, 6)))
        return self.node('Relu', x) if kind else x

    def convolution(self, layer, x):
        return self.node('Conv', x, self.constant(layer.weights), self.constant(layer.offsets),
                         group=layer.groups, strides=[layer.stride] * 2, pads=[layer.padding()] * 4)

    def add(self, _, x, y):
        return self.node('Add', x, y)

    def max_pool(self, _, x):
        return self.node('MaxPool', x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)

    def mean(self, _, x):
        return self.node('Flatten', self.node('GlobalAveragePool', x))

    def dense(self, layer, x):
        return self.node('Gemm', x, self.constant(layer.weights), self.constant(layer.offsets), transB=1)


def model_of(network):
    """The network as a file of ONNX, in memory."""
    model = Model()
    values = ['image']
    for layer in network.layers:
        value = getattr(model, layer.op)(layer, *(values[i] for i in layer.inputs))
        values.append(model.activated(value, layer.activation))
    given = helper.make_tensor_value_info('image', TensorProto.FLOAT, network.dims)
    made = helper.make_tensor_value_info(values[-1], TensorProto.FLOAT, network.result_dims())
    graph = helper.make_graph(model.nodes, 'network', [given], [made], model.constants)
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.checker.check_model(whole)
    return whole.SerializeToString()


class Run:
    """A network: `call` runs it on the same memory each time."""

    def __init__(self, options, network):
        self._session = onnxruntime.InferenceSession(model_of(network), options,
                                                     providers=['CPUExecutionProvider'])
        self._binding = self._session.io_binding()
        image = onnxruntime.OrtValue.ortvalue_from_numpy(network.image())
        self._binding.bind_ortvalue_input(self._session.get_inputs()[0].name, image)
        self._binding.bind_output(self._session.get_outputs()[0].name)
        self.call()
        # Later runs have the memory of the first one's result.
        self._made, = self._binding.get_outputs()
        self._binding.bind_ortvalue_output(self._session.get_outputs()[0].name, self._made)

    def call(self):
        self._session.run_with_iobinding(self._binding)

    def wait(self):
        pass

    def result(self):
        return self._made.numpy()


class OnnxRuntime:
    """Makes networks on ONNX Runtime, with all of its optimisations."""

    version = onnxruntime.__version__

    def __init__(self, threads):
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads, self._options.inter_op_num_threads = threads, 1

    def network(self, network):
        return Run(self._options, network)
