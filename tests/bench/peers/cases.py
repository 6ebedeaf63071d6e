"""What is measured: each case as a Kiln graph, and as what its peers run."""

import math
from typing import Any, Callable, List, NamedTuple

import numpy
import torch

F = torch.nn.functional
RATE, VOLATILITY = 0.02, 0.3


class Case(NamedTuple):
    """One piece of work.

    Attributes:
        inputs: makes the arguments
        build: adds the work to a Kiln graph: graph and parameters to results
        results: the shapes of the results
        compute: the same in PyTorch, for Inductor and for checking; None: `eager` alone
        eager: one call at a time, into given results; None: `compute` (of layer norm it is the faster)
        numpy: the same in NumPy, into given results
        inductor: whether Inductor is asked for it
        session: whether Kiln runs it in a session, compiled and op by op
    """

    name: str
    inputs: Callable[[], List[torch.Tensor]]
    build: Callable[..., List[Any]]
    results: List[List[int]]
    compute: Any = None
    eager: Any = None
    numpy: Any = None
    inductor: bool = True
    session: bool = False


def uniform(dims, low=-2.0, high=2.0):
    return torch.empty(dims).uniform_(low, high)


# --- Rows

ROWS, COLUMNS = 4096, 1024


def kiln_softmax(graph, x):
    largest = graph.broadcast_like(graph.reduce_by(x, [1], 'MAX'), x, [0])
    power = graph.exponential(x - largest)
    return [power / graph.broadcast_like(graph.reduce_by(power, [1]), x, [0])]


def kiln_layer_norm(graph, x, scale, offset):
    mean = graph.broadcast_like(graph.reduce_by(x, [1]) / COLUMNS, x, [0])
    centred = x - mean
    variance = graph.reduce_by(centred * centred, [1]) / COLUMNS
    normal = centred * graph.broadcast_like(graph.rsqrt(variance + 1e-5), x, [0])
    return [normal * graph.broadcast_like(scale, x, [1]) + graph.broadcast_like(offset, x, [1])]


def kiln_gelu(graph, x, bias, scale):
    biased = x + graph.broadcast_like(bias, x, [1])
    return [biased * 0.5 * (graph.erf(biased * math.sqrt(0.5)) + 1.0) *
            graph.broadcast_like(scale, x, [1])]


def eager_gelu(outs, x, bias, scale):
    torch.add(x, bias, out=outs[0])
    torch._C._nn.gelu(outs[0], out=outs[0])
    outs[0].mul_(scale)


def row_inputs(*vectors):
    return lambda: [uniform([ROWS, COLUMNS])] + [uniform([COLUMNS]) for _ in vectors]


# --- Elementwise

CHAIN, OPTIONS = 16 << 20, 1 << 20


def kiln_chain(graph, x):
    value = x
    for i in range(8):
        value = (graph.logistic(value) if i % 2 else graph.tanh(value)) + x
    return [value]


def torch_chain(x):
    value = x
    for i in range(8):
        value = (torch.sigmoid(value) if i % 2 else torch.tanh(value)) + x
    return [value]


def eager_chain(outs, x):
    value = x
    for i in range(8):
        (torch.sigmoid if i % 2 else torch.tanh)(value, out=outs[0])
        value = outs[0].add_(x)


def black_scholes(spot, strike, time, sqrt, log, exp, erf):
    spread = VOLATILITY * sqrt(time)
    d1 = (log(spot / strike) + (RATE + VOLATILITY * VOLATILITY / 2) * time) / spread
    d2 = d1 - spread
    n1, n2 = ((erf(d * math.sqrt(0.5)) + 1.0) * 0.5 for d in (d1, d2))
    present = strike * exp(-RATE * time)
    return [spot * n1 - present * n2, present * (1.0 - n2) - spot * (1.0 - n1)]


def option_inputs():
    return [uniform([OPTIONS], 50, 150), uniform([OPTIONS], 60, 140), uniform([OPTIONS], 0.1, 2)]


# --- Sort, transpose, loop

SORTED, SIDE = 1000000, 4096
PLACES = torch.empty(SORTED, dtype=torch.int64)
STEPS, WIDTH = 2000, 3


def kiln_sort(graph, x):
    less = graph.context.graph('less')
    less.set_results(less.parameter('f32') < less.parameter('f32'))
    return [graph.sort([x], [0], less)]


def numpy_sort(outs, x):
    numpy.copyto(outs[0], x)
    outs[0].sort()


def kiln_scan(graph, xs):
    one = graph.scalar('f32', 1)
    carry = graph.broadcast(one, [], [WIDTH])
    ys = graph.broadcast(graph.scalar('f32', 0), [], [STEPS, WIDTH])
    start = graph.tuple([graph.scalar('s32', 0), carry, ys, xs])

    condition = graph.context.graph('condition')
    state = condition.parameter_like(start)
    condition.set_results(condition.get_tuple_element(state, 0) < STEPS)

    body = graph.context.graph('body')
    state = body.parameter_like(start)
    step, carry, ys, xs = (body.get_tuple_element(state, i) for i in range(4))
    zero = body.scalar('s32', 0)
    x = body.reshape(body.dynamic_slice(xs, [step, zero], [1, WIDTH]), [WIDTH])
    y = body.reshape(carry * x, [1, WIDTH])
    body.set_results(step + 1, carry + x, body.dynamic_update_slice(ys, y, [step, zero]), xs)

    end = graph.while_(start, condition, body)
    return [graph.get_tuple_element(end, 1), graph.get_tuple_element(end, 2)]


def torch_scan(outs, xs):
    carry, ys = outs
    carry.fill_(1)
    for i in range(STEPS):
        torch.mul(carry, xs[i], out=ys[i])
        carry += xs[i]


def numpy_scan(outs, xs):
    carry, ys = outs
    carry.fill(1)
    for i in range(STEPS):
        numpy.multiply(carry, xs[i], out=ys[i])
        carry += xs[i]


# --- Transforms and small systems

SERIES, POINTS, SYSTEMS = 1000, 1024, 10000


def system_inputs():
    matrices = uniform([SYSTEMS, 3, 3])
    return [matrices @ matrices.mT + 3 * torch.eye(3), uniform([SYSTEMS, 3, 1])]


def kiln_systems(graph, matrices, sides):
    factors = graph.cholesky(matrices, lower=True)
    half = graph.triangular_solve(factors, sides, 'NO_TRANSPOSE', left_side=True, lower=True)
    return [graph.triangular_solve(factors, half, 'TRANSPOSE', left_side=True, lower=True)]


# --- A training step of a multilayer perceptron: softmax cross entropy, gradient descent

BATCH, SIZES, RATE_OF_STEP = 128, [784, 512, 256, 10], 0.01
LAYERS = len(SIZES) - 1


def mlp_inputs():
    labels = torch.randint(SIZES[-1], [BATCH])
    inputs = [torch.rand(BATCH, SIZES[0]), F.one_hot(labels, SIZES[-1]).float()]
    for rows, columns in zip(SIZES, SIZES[1:]):
        inputs += [uniform([rows, columns], -rows ** -0.5, rows ** -0.5), uniform([columns], -.1, .1)]
    return inputs


def kiln_mlp(graph, images, labels, *parameters):
    def like(number, value):
        return graph.broadcast_like(graph.scalar('f32', number), value, [])

    weights, biases = parameters[::2], parameters[1::2]
    values, sums = [images], []
    for w, b in zip(weights, biases):
        product = graph.dot(values[-1], w, [], [], [1], [0])
        sums.append(product + graph.broadcast_like(b, product, [1]))
        values.append(graph.maximum(sums[-1], like(0, sums[-1])))
    logits = sums[-1]
    shifted = logits - graph.broadcast_like(graph.reduce_by(logits, [1], 'MAX'), logits, [0])
    power = graph.exponential(shifted)
    total = graph.reduce_by(power, [1])
    losses = graph.log(total) - graph.reduce_by(labels * shifted, [1])
    loss = graph.reduce_by(losses, [0]) / BATCH
    slope = (power / graph.broadcast_like(total, power, [0]) - labels) / BATCH
    made = []
    for layer in reversed(range(LAYERS)):
        gradients = (graph.dot(values[layer], slope, [], [], [0], [0]), graph.reduce_by(slope, [0]))
        made = [parameter - gradient * RATE_OF_STEP for parameter, gradient
                in zip((weights[layer], biases[layer]), gradients)] + made
        if layer:
            back = graph.dot(slope, weights[layer], [], [], [1], [1])
            zero = like(0, back)
            slope = graph.select(sums[layer - 1] > zero, back, zero)
    return [loss] + made


def eager_mlp(outs, images, labels, *parameters):
    with torch.enable_grad():
        leaves = [p.detach().requires_grad_() for p in parameters]
        value = images
        for layer in range(LAYERS):
            value = torch.addmm(leaves[2 * layer + 1], value, leaves[2 * layer])
            if layer + 1 < LAYERS:
                value = F.relu(value)
        loss = F.cross_entropy(value, labels.argmax(1))
        gradients = torch.autograd.grad(loss, leaves)
    outs[0].copy_(loss)
    for parameter, gradient, out in zip(parameters, gradients, outs[1:]):
        torch.sub(parameter, gradient, alpha=RATE_OF_STEP, out=out)


# --- Gemms

GEMMS = [(64, 64, 64), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2000, 2000, 2000),
         (2048, 2048, 2048), (4096, 1024, 1024), (4096, 256, 4096), (20000, 64, 256),
         (128, 768, 768), (128, 3072, 768), (196, 1024, 256), (1, 768, 3072), (100, 10, 784)]


def gemm(m, n, k):
    return Case(f'gemm {m}x{n}x{k}', lambda: [uniform([m, k]), uniform([k, n])],
                lambda graph, a, b: [graph.dot(a, b, [], [], [1], [0])], [[m, n]],
                compute=lambda a, b: [a @ b],
                eager=lambda outs, a, b: torch.mm(a, b, out=outs[0]),
                numpy=lambda outs, a, b: numpy.matmul(a, b, out=outs[0]), inductor=False)


CASES: List[Case] = [
    Case('softmax 4096x1024', row_inputs(), kiln_softmax, [[ROWS, COLUMNS]],
         compute=lambda x: [F.softmax(x, 1)],
         eager=lambda outs, x: torch.softmax(x, 1, out=outs[0])),
    Case('layer norm 4096x1024', row_inputs('scale', 'offset'), kiln_layer_norm, [[ROWS, COLUMNS]],
         compute=lambda x, scale, offset: [F.layer_norm(x, [COLUMNS], scale, offset)]),
    Case('bias-gelu-scale 4096x1024', row_inputs('bias', 'scale'), kiln_gelu, [[ROWS, COLUMNS]],
         compute=lambda x, bias, scale: [F.gelu(x + bias) * scale], eager=eager_gelu),
    Case('tanh/sigmoid chain 16M', lambda: [uniform([CHAIN])], kiln_chain, [[CHAIN]],
         compute=torch_chain, eager=eager_chain),
    Case('Black-Scholes 1M', option_inputs,
         lambda graph, *x: black_scholes(*x, graph.sqrt, graph.log, graph.exponential, graph.erf),
         [[OPTIONS], [OPTIONS]],
         compute=lambda *x: black_scholes(*x, torch.sqrt, torch.log, torch.exp, torch.erf)),
    Case('sort 1M', lambda: [torch.randn(SORTED)], kiln_sort, [[SORTED]],
         eager=lambda outs, x: torch.sort(x, out=(outs[0], PLACES)), numpy=numpy_sort),
    Case('transpose 4096x4096', lambda: [uniform([SIDE, SIDE])],
         lambda graph, x: [graph.transpose(x, [1, 0])], [[SIDE, SIDE]],
         compute=lambda x: [x.t()], eager=lambda outs, x: outs[0].copy_(x.t()),
         numpy=lambda outs, x: numpy.copyto(outs[0], x.T)),
    Case('scan 2000x3', lambda: [uniform([STEPS, WIDTH])], kiln_scan, [[WIDTH], [STEPS, WIDTH]],
         eager=torch_scan, numpy=numpy_scan),
    Case('spectra of 1000x1024', lambda: [uniform([SERIES, POINTS])],
         lambda graph, x: [graph.abs(graph.fft(x, 'RFFT', [POINTS]))], [[SERIES, POINTS // 2 + 1]],
         eager=lambda outs, x: torch.abs(torch.fft.rfft(x), out=outs[0]),
         numpy=lambda outs, x: numpy.abs(numpy.fft.rfft(x), out=outs[0])),
    Case('systems by Cholesky, 10000 of 3x3', system_inputs, kiln_systems, [[SYSTEMS, 3, 1]],
         eager=lambda outs, a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a), out=outs[0])),
    Case('MLP 784-512-256-10, a step', mlp_inputs, kiln_mlp,
         [[]] + [dims for pair in zip(SIZES, SIZES[1:]) for dims in (list(pair), [pair[1]])],
         eager=eager_mlp, session=True),
] + [gemm(*shape) for shape in GEMMS]
