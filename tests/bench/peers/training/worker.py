"""usage: worker.py kiln|xla|torch|inductor THREADS

One library's side: reads a command a line, answers each with a line of JSON.

    prepare CASE   makes the training and its first steps, and answers with their losses
    sample SECONDS makes steps for so long
    drop           forgets it
    rate SIDE      floating-point operations per second of a product of square matrices (kiln)
"""

import gc
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import turns  # noqa: E402  pylint: disable=wrong-import-position

ANSWERS = turns.answers()

import cases  # noqa: E402  pylint: disable=wrong-import-position

STEPS = 10


def library(name, threads):
    if name == 'kiln':
        import on_kiln
        return on_kiln.Kiln(threads)
    if name == 'xla':
        import on_xla
        return on_xla.Xla(threads)
    import on_torch
    return (on_torch.Inductor if name == 'inductor' else on_torch.Torch)(threads)


class Side:
    """The commands."""

    def __init__(self, name, threads):
        self._library = library(name, threads)
        self._training = None

    def prepare(self, name):
        start = time.perf_counter()
        self._training = self._library.training(cases.CASES[name])
        losses, first = [], 0
        for _ in range(STEPS):
            self._training.call()
            losses.append(self._training.loss())
            first = first or time.perf_counter() - start
        return {'losses': losses, 'first': first}

    def sample(self, seconds):
        """The time of a step, of steps one after another."""
        turns.rest()
        return {'seconds': turns.seconds_per_call(self._training, float(seconds))}

    def rate(self, side):
        return {'rate': self._library.rate(int(side))}

    def drop(self, _):
        self._training = None
        gc.collect()
        return {}


def main():
    side = Side(sys.argv[1], int(sys.argv[2]))
    turns.serve(sys.stdin, ANSWERS, {name: getattr(side, name)
                                     for name in ('prepare', 'sample', 'drop', 'rate')})


if __name__ == '__main__':
    main()
