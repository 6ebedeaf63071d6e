"""Trainings on PyTorch, eager and compiled by Inductor, with fused optimisers."""

import logging

import torch
import torch._inductor.config as inductor_config

import cases

F = torch.nn.functional


def perceptron(p, images):
    x = images
    layers = len(p) // 2
    for i in range(layers):
        x = F.linear(x, p[f'w{i}'], p[f'b{i}'])
        if i + 1 < layers:
            x = F.relu(x)
    return x


def convolutional(p, images):
    x = images
    for i, (side, _, _) in enumerate(cases.FILTERS):
        x = F.relu(F.conv2d(x, p[f'filter{i}'], p[f'offset{i}'], 2, side // 2))
    # In the order of memory, which Kiln has in its own.
    return F.linear(x.permute(0, 2, 3, 1).flatten(1), p['w0'], p['b0'])


def transformer(p, text):
    norm = lambda x, scale: F.rms_norm(x, [cases.WIDTH], scale, cases.EPSILON)  # noqa: E731
    x = F.embedding(text, p['embedding']) + p['positions']
    for i in range(cases.LAYERS):
        together = F.linear(norm(x, p[f'norm1.{i}']), p[f'queries{i}'])
        query, key, value = (part.unflatten(-1, (cases.HEADS, -1)).transpose(1, 2)
                             for part in together.chunk(3, -1))
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + F.linear(attended.transpose(1, 2).flatten(2), p[f'attended{i}'])
        inner = F.gelu(F.linear(norm(x, p[f'norm2.{i}']), p[f'inner{i}']), approximate='tanh')
        x = x + F.linear(inner, p[f'outer{i}'])
    return F.linear(norm(x, p['norm']), p['output']).flatten(0, 1)


def _parameter(name, array):
    """In PyTorch's order: of matrices outputs before inputs, of filters too."""
    value = torch.from_numpy(array)
    if value.dim() == 4:
        value = value.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    elif value.dim() == 2 and name not in ('embedding', 'positions'):
        value = value.t().contiguous()
    return value.clone().requires_grad_()


class Training:
    """A training: `call` makes a step, `loss` tells the last one's loss."""

    def __init__(self, case, compiled):
        model = globals()[case.model]
        self._parameters = {name: _parameter(name, x) for name, x in case.parameters().items()}
        kind = {'sgd': torch.optim.SGD, 'adam': torch.optim.Adam, 'adamw': torch.optim.AdamW}
        self._optimizer = kind[case.optimizer](self._parameters.values(), lr=case.rate, fused=True)
        self._clip = case.clip
        given, labels = (torch.from_numpy(x) for x in cases.batch_of(case).values())
        if case.model == 'convolutional':
            given = given.permute(0, 3, 1, 2)  # its memory is that of channels last
        self._batch = given, labels.long()

        def loss_of(parameters, given, labels):
            return F.cross_entropy(model(parameters, given), labels)

        torch._dynamo.reset()
        self._loss_of = torch.compile(loss_of, fullgraph=True, dynamic=False) if compiled else loss_of
        self._loss = None

    def call(self):
        self._optimizer.zero_grad()
        self._loss = self._loss_of(self._parameters, *self._batch)
        self._loss.backward()
        if self._clip:
            torch.nn.utils.clip_grad_norm_(self._parameters.values(), self._clip)
        self._optimizer.step()

    def wait(self):
        pass

    def loss(self):
        return float(self._loss.detach())


class Torch:
    """Makes trainings on PyTorch."""

    compiled = False

    def __init__(self, threads):
        logging.disable(logging.WARNING)  # of Triton that is not installed
        torch.set_num_threads(threads)
        inductor_config.cpp.threads = threads

    def training(self, case):
        return Training(case, self.compiled)


class Inductor(Torch):
    """Makes trainings whose forward and backward parts Inductor compiles."""

    compiled = True
