"""Training: losses, schedules of learning rates, optimisers, and what is done with gradients, each
built from ops. `Graph.gradient` makes the gradients.

    initial, graph = context.graph('initial'), context.graph('step')
    weights = [train.initialize(initial, 'he_normal', 'f32', (784, 10), 'w')]
    optimizer = train.Optimizer('adam')
    values = weights + optimizer.state(weights)
    initial.set_results(*values)

    values = train.parameters(graph, values)
    loss = ...
    gradients = graph.gradient(loss, values[:1])
    step = optimizer.update(0.001, values[:1], gradients, values[1:])
    graph.set_results(*step.parameters, *step.state, loss)

The header train.h has the formulas. Functions take values and add to their graph; a learning rate
may be a number.
"""

import ctypes
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _structs
from ._dtypes import DTypeLike, dtype_number
from ._library import ints, lib, options, text
from ._ops import values as ids_of
from .graph import Graph
from .value import Value

_REDUCTIONS = {'mean': 1, 'sum': 2, 'none': 3}
_SCHEDULES = {'constant': 0, 'linear': 1, 'cosine': 2}
_OPTIMIZERS = {'sgd': 1, 'adam': 2, 'adamw': 3, 'adagrad': 4, 'rmsprop': 5, 'lion': 6,
               'adafactor': 7}
_INITIALIZERS = {'zeros': 1, 'ones': 2, 'uniform': 3, 'normal': 4, 'truncated_normal': 5,
                 'glorot_uniform': 6, 'glorot_normal': 7, 'he_uniform': 8, 'he_normal': 9,
                 'orthogonal': 10}


def _number(name: str, numbers: Mapping[str, int]) -> int:
    if name not in numbers:
        raise ValueError('{!r} is none of {}'.format(name, ', '.join(numbers)))
    return numbers[name]


def _id(value: Optional[Value]) -> int:
    return 0 if value is None else value.id


def _graph_of(values: Sequence[Value]) -> Graph:
    if not values:
        raise ValueError('no values, so no graph')
    return values[0].graph


def _room(count: int) -> Any:
    return (ctypes.c_uint64 * count)()


def _values(graph: Graph, ids: Any) -> List[Value]:
    return [graph.value(number) for number in ids]


# --- Losses

def softmax_cross_entropy(logits: Value, labels: Value, label_smoothing: float = 0.0,
                          reduction: str = 'mean') -> Value:
    """The cross-entropy of softmax(logits) and integer labels.

    Args:
        logits: [..., C]
        labels: [...], the classes; examples with a negative one are left out
        reduction: 'mean', 'sum' or 'none'
    """
    return logits.graph.value(lib.kiln_train_softmax_cross_entropy(
        logits.graph, logits.id, labels.id, label_smoothing, _number(reduction, _REDUCTIONS)))


def sigmoid_cross_entropy(logits: Value, labels: Value, reduction: str = 'mean') -> Value:
    """The cross-entropy of logistic(logits) and labels from 0 to 1, of each element."""
    return logits.graph.value(lib.kiln_train_sigmoid_cross_entropy(
        logits.graph, logits.id, labels.id, _number(reduction, _REDUCTIONS)))


def squared_error(predictions: Value, targets: Value, reduction: str = 'mean') -> Value:
    """The square of the difference of each element."""
    return predictions.graph.value(lib.kiln_train_squared_error(
        predictions.graph, predictions.id, targets.id, _number(reduction, _REDUCTIONS)))


def huber(predictions: Value, targets: Value, delta: float = 1.0,
          reduction: str = 'mean') -> Value:
    """d^2 / 2 of a difference d up to |d| = delta, and delta * (|d| - delta / 2) beyond."""
    return predictions.graph.value(lib.kiln_train_huber(
        predictions.graph, predictions.id, targets.id, delta, _number(reduction, _REDUCTIONS)))


# --- Optimisers

def schedule(step: Value, peak: float, kind: str = 'constant', steps: int = 0, end: float = 0.0,
             warmup_steps: int = 0, start: float = 0.0) -> Value:
    """A learning rate that depends on the step, the first value of an optimiser's state.

    Args:
        peak: the value after the warm-up
        kind: 'constant', 'linear' or 'cosine'
        steps: all steps, those of the warm-up among them
        end: the value after them
        warmup_steps: those of the warm-up, which is linear from `start`
    """
    made = options(_structs.ScheduleOptions, lib.kiln_schedule_options_init,
                   kind=_number(kind, _SCHEDULES), start=start, peak=peak, end=end,
                   warmup_steps=warmup_steps, steps=steps)
    return step.graph.value(lib.kiln_train_schedule(step.graph, ctypes.byref(made), step.id))


class Update(NamedTuple):
    """The results of an optimiser's update."""

    parameters: List[Value]
    state: List[Value]


class Optimizer:
    """An optimiser of a kind: sgd, adam, adamw, adagrad, rmsprop, lion or adafactor.

    Args:
        decayed: for each parameter whether weight decay applies to it; None: to all
        master_weights: the state has values of f32 for narrower parameters, which are updated
        settings: others than the kind's defaults: momentum, nesterov, beta1, beta2, epsilon,
            weight_decay, initial_sum, centered, clip_threshold
    """

    def __init__(self, kind: str, decayed: Optional[Sequence[bool]] = None,
                 master_weights: bool = False, **settings: Union[float, bool]) -> None:
        made = _structs.OptimizerOptions()
        lib.kiln_optimizer_options_init(ctypes.byref(made), ctypes.sizeof(made),
                                        _number(kind, _OPTIMIZERS))
        made.master_weights = int(master_weights)
        for name, setting in settings.items():
            if name not in _SETTINGS:
                raise TypeError('{!r} is none of {}'.format(name, ', '.join(_SETTINGS)))
            setattr(made, name, setting)
        if decayed is not None:
            made.decayed = (ctypes.c_int32 * len(decayed))(*map(int, decayed))
            made.decayed_count = len(decayed)
        self._options = made

    def state(self, parameters: Sequence[Value]) -> List[Value]:
        """The first state, with the number of updates as its first value."""
        graph = _graph_of(parameters)
        ids, count = ids_of(parameters)
        room = _room(1 + 4 * count)
        needed = ctypes.c_size_t()
        lib.kiln_train_state(graph, ctypes.byref(self._options), ids, count, room, len(room),
                             ctypes.byref(needed))
        return _values(graph, room[:needed.value])

    def update(self, learning_rate: Union[float, Value], parameters: Sequence[Value],
               gradients: Sequence[Value], state: Sequence[Value],
               apply: Optional[Value] = None) -> Update:
        """The next parameters, and the next state.

        Args:
            apply: a pred: where it is false, all stays as it is
        """
        graph = _graph_of(parameters)
        if len(gradients) != len(parameters):
            raise ValueError('{} gradients of {} parameters'.format(len(gradients),
                                                                    len(parameters)))
        if not isinstance(learning_rate, Value):
            wide = any(p.shape.dtype == 'f64' for p in parameters)
            learning_rate = graph.scalar('f64' if wide else 'f32', learning_rate)
        ids, count = ids_of(parameters)
        state_ids, state_count = ids_of(state)
        next_parameters, next_state = _room(count), _room(state_count)
        lib.kiln_train_update(graph, ctypes.byref(self._options), learning_rate.id, _id(apply),
                              ids, ids_of(gradients)[0], count, state_ids, state_count,
                              next_parameters, next_state)
        return Update(_values(graph, next_parameters), _values(graph, next_state))


_SETTINGS = ('momentum', 'nesterov', 'beta1', 'beta2', 'epsilon', 'weight_decay', 'initial_sum',
             'centered', 'clip_threshold')


def parameters(graph: Graph, initial: Sequence[Value]) -> List[Value]:
    """Parameters of the step's graph, like the values of the initial graph, with their names."""
    ids, count = ids_of(initial)
    made = _room(count)
    lib.kiln_train_parameters(graph, _graph_of(initial), ids, count, made)
    return _values(graph, made)


# --- Gradients

def norm(values: Sequence[Value]) -> Value:
    """The root of the sum of the squares of all elements."""
    graph = _graph_of(values)
    return graph.value(lib.kiln_train_norm(graph, *ids_of(values)))


def clip_by_norm(gradients: Sequence[Value], limit: float) -> List[Value]:
    """The gradients, multiplied by one number, so that their norm is at most the limit."""
    graph = _graph_of(gradients)
    ids, count = ids_of(gradients)
    clipped = _room(count)
    lib.kiln_train_clip_by_norm(graph, limit, ids, count, clipped, None)
    return _values(graph, clipped)


def clip_by_value(gradients: Sequence[Value], limit: float) -> List[Value]:
    """The gradients between -limit and limit."""
    graph = _graph_of(gradients)
    ids, count = ids_of(gradients)
    clipped = _room(count)
    lib.kiln_train_clip_by_value(graph, limit, ids, count, clipped)
    return _values(graph, clipped)


def accumulator(parameters: Sequence[Value]) -> List[Value]:
    """The first state of a gradient accumulation: one value, and one for each parameter."""
    graph = _graph_of(parameters)
    ids, count = ids_of(parameters)
    state = _room(count + 1)
    lib.kiln_train_accumulator(graph, ids, count, state)
    return _values(graph, state)


class Accumulated(NamedTuple):
    """The results of `accumulate`."""

    means: List[Value]
    ready: Value
    state: List[Value]


def accumulate(every: int, gradients: Sequence[Value], state: Sequence[Value],
               include: Optional[Value] = None) -> Accumulated:
    """Adds gradients up, and has the means of `every` of them where `ready` is true, which goes to
    `Optimizer.update` as `apply`. Where the pred `include` is false, they are left out.
    """
    graph = _graph_of(gradients)
    ids, count = ids_of(gradients)
    if len(state) != count + 1:
        raise ValueError('a state of {} values; expected {}'.format(len(state), count + 1))
    means, ready, next_state = _room(count), ctypes.c_uint64(), _room(count + 1)
    lib.kiln_train_accumulate(graph, every, _id(include), ids, count, ids_of(state)[0], means,
                              ctypes.byref(ready), next_state)
    return Accumulated(_values(graph, means), graph.value(ready.value),
                       _values(graph, next_state))


class Unscaled(NamedTuple):
    """The results of `LossScale.unscale`."""

    gradients: List[Value]
    finite: Value
    state: List[Value]


class LossScale:
    """A scale of the loss for gradients of f16, the first of two values of a state. It grows after
    `interval` steps with finite gradients, and backs off after each other one.
    """

    def __init__(self, initial: float = 65536, growth: float = 2, backoff: float = 0.5,
                 interval: int = 2000) -> None:
        self._options = options(_structs.LossScaleOptions, lib.kiln_loss_scale_options_init,
                                initial=initial, growth=growth, backoff=backoff,
                                interval=interval)

    def state(self, graph: Graph) -> List[Value]:
        """The first state."""
        made = _room(2)
        lib.kiln_train_loss_scale(graph, ctypes.byref(self._options), made)
        return _values(graph, made)

    def unscale(self, state: Sequence[Value], gradients: Sequence[Value]) -> Unscaled:
        """The gradients of the loss itself; whether all are finite, which goes to
        `Optimizer.update` as `apply`; and the next state.
        """
        graph = _graph_of(state)
        if len(state) != 2:
            raise ValueError('a state of {} values; expected 2'.format(len(state)))
        ids, count = ids_of(gradients)
        unscaled, finite, next_state = _room(count), ctypes.c_uint64(), _room(2)
        lib.kiln_train_unscale(graph, ctypes.byref(self._options), ids_of(state)[0], ids, count,
                               unscaled, ctypes.byref(finite), next_state)
        return Unscaled(_values(graph, unscaled), graph.value(finite.value),
                        _values(graph, next_state))


def average(decay: float, averages: Sequence[Value], values: Sequence[Value],
            step: Optional[Value] = None) -> List[Value]:
    """The next exponential moving averages. With a step the decay is smaller at first."""
    graph = _graph_of(averages)
    if len(values) != len(averages):
        raise ValueError('{} values of {} averages'.format(len(values), len(averages)))
    ids, count = ids_of(averages)
    made = _room(count)
    lib.kiln_train_average(graph, decay, _id(step), ids, ids_of(values)[0], count, made)
    return _values(graph, made)


# --- Initialisers

def initialize(graph: Graph, kind: str, dtype: DTypeLike, dims: Sequence[int], name: str = '',
               seed: int = 0, scale: float = 1.0, in_axis: int = -2, out_axis: int = -1) -> Value:
    """The first value of a parameter, with random numbers by the seed and the name.

    Args:
        kind: 'zeros', 'ones', 'uniform', 'normal', 'truncated_normal', 'glorot_uniform',
            'glorot_normal', 'he_uniform', 'he_normal' or 'orthogonal'
        in_axis: the dimension of the inputs, counted from the end
        out_axis: that of the outputs
    """
    made = options(_structs.InitializerOptions, lib.kiln_initializer_options_init,
                   kind=_number(kind, _INITIALIZERS), seed=seed, scale=scale,
                   in_dimension=in_axis, out_dimension=out_axis)
    return graph.value(lib.kiln_train_initialize(graph, ctypes.byref(made), dtype_number(dtype),
                                                 *ints(dims), *text(name)))
