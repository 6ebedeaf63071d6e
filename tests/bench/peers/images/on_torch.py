"""Networks for images on oneDNN, by PyTorch: Inductor with frozen weights, images with features last.

Frozen, the weights are in oneDNN's own order, and activations and sums are in its convolutions.
"""

import logging

import torch
import torch._inductor.config as inductor_config

F = torch.nn.functional


class Module(torch.nn.Module):
    """A network."""

    def __init__(self, network):
        super().__init__()
        self._layers = network.layers
        for kind in 'weights', 'offsets':
            for i, layer in enumerate(network.layers):
                array = getattr(layer, kind)
                if array is not None:
                    self.register_parameter(f'{kind}{i}', torch.nn.Parameter(torch.from_numpy(array)))

    def forward(self, image):
        values = [image]
        for i, layer in enumerate(self._layers):
            x = values[layer.inputs[0]]
            if layer.op == 'convolution':
                x = F.conv2d(x, getattr(self, f'weights{i}'), getattr(self, f'offsets{i}'),
                             layer.stride, layer.padding(), 1, layer.groups)
            elif layer.op == 'add':
                x = x + values[layer.inputs[1]]
            elif layer.op == 'max_pool':
                x = F.max_pool2d(x, 3, 2, 1)
            elif layer.op == 'mean':
                x = x.mean((2, 3))
            else:
                x = F.linear(x, getattr(self, f'weights{i}'), getattr(self, f'offsets{i}'))
            values.append(getattr(F, layer.activation)(x) if layer.activation else x)
        return values[-1]


class Run:
    """A network: `call` runs it."""

    def __init__(self, network):
        torch._dynamo.reset()
        module = Module(network).eval().to(memory_format=torch.channels_last)
        self._image = torch.from_numpy(network.image()).contiguous(memory_format=torch.channels_last)
        self._compiled = torch.compile(module, fullgraph=True, dynamic=False)
        self._result = None
        for _ in range(3):
            self.call()

    def call(self):
        with torch.inference_mode(False), torch.no_grad():
            self._result = self._compiled(self._image)

    def wait(self):
        pass

    def result(self):
        return self._result.numpy()


class Torch:
    """Makes networks on PyTorch."""

    version = torch.__version__

    def __init__(self, threads):
        logging.disable(logging.WARNING)  # of Triton that is not installed
        torch.set_num_threads(threads)
        inductor_config.cpp.threads = threads
        inductor_config.freezing = True

    def network(self, network):
        return Run(network)
