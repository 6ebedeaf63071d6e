#!/usr/bin/env python3
"""usage: training.py >training.inc

Makes the tables that tests/capi/train_*.c hold train.h against: numbers of PyTorch and Optax, all
computed in double precision. It needs torch, jax and optax; training.inc says which versions made it.

The parameters w [4,3] and b [3] descend with the gradient c * (p - q) + noise, whose parts are
simple numbers that both sides compute (`problem`).
"""

import math
import sys
import textwrap

import jax
import numpy as np
import optax
import torch

jax.config.update('jax_enable_x64', True)

STEPS, SAVED = 100, (1, 10, 100)
SHAPES = ((4, 3), (3,))


def simple(i, times, plus, modulus):
    return (np.asarray(i) * times + plus) % modulus


def problem(k, step=None):
    """The first value, the factor and the aim of parameter k; or its noise at a step."""
    size = math.prod(SHAPES[k])
    i = np.arange(size) + 100 * k
    if step is not None:
        return ((simple(i, 13, 29 * step, 16) - 7.5) / 64).reshape(SHAPES[k])
    return tuple(x.reshape(SHAPES[k]) for x in (
        (simple(i, 37, 11, 64) - 32) / 32, 0.25 + i % 7 / 4, (simple(i, 53, 5, 64) - 32) / 64))


PROBLEM = [problem(k) for k in range(2)]


def gradients(parameters, step):
    return [c * (p - q) + problem(k, step)
            for k, (p, (_, c, q)) in enumerate(zip(parameters, PROBLEM))]


def start(dtype=np.float64):
    return [p.astype(dtype) for p, _, _ in PROBLEM]


def by_torch(make, change=lambda gradients, step: gradients, rate=None, every=1, after=None):
    """The parameters at the saved steps. `change` makes other gradients of them."""
    parameters = [torch.tensor(p, requires_grad=True) for p in start()]
    optimizer = make(parameters)
    saved, sums = [], None
    for step in range(STEPS):
        found = gradients([p.detach().numpy() for p in parameters], step)
        if every > 1:
            sums = found if sums is None else [a + b for a, b in zip(sums, found)]
            found = [s / every for s in sums]
        if (step + 1) % every == 0:
            if rate is not None:
                optimizer.param_groups[0]['lr'] = rate(step)
            for p, g in zip(parameters, change(found, step)):
                p.grad = torch.tensor(g)
            optimizer.step()
            sums = None
        values = [p.detach().numpy() for p in parameters]
        if after is not None:
            values = after(values)
        if step + 1 in SAVED:
            saved.append(np.concatenate([v.ravel() for v in values]))
    return np.stack(saved)


def by_optax(transformation):
    parameters, saved = start(), []
    state = transformation.init(parameters)
    for step in range(STEPS):
        updates, state = transformation.update(gradients(parameters, step), state, parameters)
        parameters = [np.asarray(p) for p in optax.apply_updates(parameters, updates)]
        if step + 1 in SAVED:
            saved.append(np.concatenate([p.ravel() for p in parameters]))
    return np.stack(saved)


def clipped_by_norm(found, step):
    norm = math.sqrt(sum((g * g).sum() for g in found))
    return [g * min(1, 0.5 / norm) for g in found]


def averaged():
    function = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    averages = [torch.tensor(p) for p in start()]

    def average(values):
        function(averages, [torch.tensor(v) for v in values], None)
        return [a.numpy().copy() for a in averages]
    return average


def masked(parameters, weight_decay):
    return [{'params': parameters[:1], 'weight_decay': weight_decay},
            {'params': parameters[1:], 'weight_decay': 0}]


SCHEDULES = {
    'cosine': optax.warmup_cosine_decay_schedule(0.01, 0.1, 20, 80, 0.001),
    'linear': optax.linear_schedule(0.1, 0.01, 60),
    'constant': optax.warmup_constant_schedule(0.02, 0.1, 10),
}

RUNS = {
    'sgd': lambda: by_torch(lambda p: torch.optim.SGD(p, 0.05)),
    'sgd_momentum': lambda: by_torch(lambda p: torch.optim.SGD(p, 0.02, 0.9, weight_decay=0.1)),
    'sgd_nesterov': lambda: by_torch(lambda p: torch.optim.SGD(p, 0.02, 0.9, nesterov=True)),
    'adam': lambda: by_torch(lambda p: torch.optim.Adam(p, 0.01)),
    'adam_decay': lambda: by_torch(
        lambda p: torch.optim.Adam(p, 0.02, (0.8, 0.95), 1e-4, weight_decay=0.1)),
    'adamw': lambda: by_torch(lambda p: torch.optim.AdamW(p, 0.01)),
    'adamw_mask': lambda: by_torch(lambda p: torch.optim.AdamW(masked(p, 0.3), 0.01)),
    'adagrad': lambda: by_torch(lambda p: torch.optim.Adagrad(p, 0.1, weight_decay=0.05)),
    'adagrad_sum': lambda: by_torch(
        lambda p: torch.optim.Adagrad(p, 0.1, initial_accumulator_value=0.1, eps=1e-3)),
    'rmsprop': lambda: by_torch(lambda p: torch.optim.RMSprop(p, 0.01)),
    'rmsprop_centered': lambda: by_torch(lambda p: torch.optim.RMSprop(
        p, 0.002, 0.9, 1e-4, 0.1, 0.9, centered=True)),
    'lion': lambda: by_optax(optax.lion(0.01, 0.9, 0.99, weight_decay=0.1)),
    'adafactor': lambda: by_torch(lambda p: torch.optim.Adafactor(p, 0.05, weight_decay=0.1)),
    'adafactor_slow': lambda: by_torch(
        lambda p: torch.optim.Adafactor(p, 0.5, eps=(None, 0.5), d=1.5)),
    'clip_norm': lambda: by_torch(lambda p: torch.optim.SGD(p, 0.05, 0.9), clipped_by_norm),
    'clip_value': lambda: by_torch(lambda p: torch.optim.SGD(p, 0.05, 0.9),
                                   lambda g, step: [x.clip(-0.25, 0.25) for x in g]),
    'schedule': lambda: by_torch(lambda p: torch.optim.Adam(p),
                                 rate=lambda step: float(SCHEDULES['cosine'](step))),
    'accumulate': lambda: by_torch(lambda p: torch.optim.Adam(p, 0.05), every=4),
    'average': lambda: by_torch(lambda p: torch.optim.SGD(p, 0.05), after=averaged()),
}


def losses():
    """Rows of a name, the loss, and its gradient by the first operand [4,5]."""
    i = np.arange(20)
    x = ((simple(i, 37, 11, 64) - 32) / 8).reshape(4, 5)
    y = (simple(i, 53, 5, 64) / 64).reshape(4, 5)
    labels = np.array([3, 0, 4, 1])
    functional = torch.nn.functional
    rows = {
        'softmax': lambda t: functional.cross_entropy(t, torch.tensor(labels)),
        'softmax_sum': lambda t: functional.cross_entropy(t, torch.tensor(labels),
                                                          reduction='sum'),
        'softmax_smooth': lambda t: functional.cross_entropy(t, torch.tensor(labels),
                                                             label_smoothing=0.1),
        'softmax_ignore': lambda t: functional.cross_entropy(
            t, torch.tensor([3, -100, 4, -100])),
        'sigmoid': lambda t: functional.binary_cross_entropy_with_logits(t, torch.tensor(y)),
        'squared': lambda t: functional.mse_loss(t, torch.tensor(y)),
        'huber': lambda t: functional.huber_loss(t, torch.tensor(y), delta=1.5),
    }
    for name, function in rows.items():
        t = torch.tensor(x, requires_grad=True)
        loss = function(t)
        loss.backward()
        yield name, [loss.item(), *t.grad.numpy().ravel()]


def scales():
    """The loss scale after each of 20 steps, and whether its gradients were finite."""
    finite = [(step * 7 + 3) % 11 > 1 for step in range(20)]
    scale, steps = torch.tensor([1024.0]), torch.tensor([0], dtype=torch.int32)
    found = []
    for is_finite in finite:
        torch._amp_update_scale_(scale, steps, torch.tensor([0.0 if is_finite else 1.0]), 2.0, 0.5,
                                 3)
        found.append(scale.item())
    return finite, found


def table(name, comment, rows):
    width = len(next(iter(rows.values())))
    print('/* {} */'.format(comment))
    print('static const struct {{\n  const char* name;\n  double values[{}];\n}} {}[] = {{'.format(
        width, name))
    for row, numbers in rows.items():
        text = ', '.join('{:.17g}'.format(n) for n in numbers)
        print('    {{"{}",\n{}}}}},'.format(row, textwrap.fill(
            text, 100, initial_indent=' ' * 5 + '{', subsequent_indent=' ' * 6)))
    print('};\n')


def main():
    print('/* Made by tests/reference/training.py with torch {}, optax {}, jax {}, numpy {}; do not '
          'edit. */\n'.format(torch.__version__.split('+')[0], optax.__version__, jax.__version__,
                              np.__version__))
    table('kRuns', 'w [4,3] and b [3] after 1, 10 and 100 steps.',
          {name: run().ravel() for name, run in RUNS.items()})
    table('kLosses', 'A loss, and its gradient by x [4,5].', dict(losses()))
    table('kSchedules', 'Learning rates at steps 0 to 99.',
          {name: [float(f(step)) for step in range(STEPS)] for name, f in SCHEDULES.items()})
    finite, found = scales()
    table('kScales', 'Loss scales of 20 steps, and whether their gradients were finite.',
          {'finite': finite, 'scale': found})


if __name__ == '__main__':
    sys.exit(main())
