"""Ctrl-C while the library works.

Python calls signal handlers in the main thread between two bytecode instructions, so not before a
function of the library has returned. Long work is therefore done by a second thread. The main
thread waits for it interruptibly; on a signal the work is cancelled. Work that polls its flag too
seldom is left to end by itself. Threads other than the main one get no signals and do their work
themselves.
"""

import atexit
import os
import queue
import threading
import time
from _thread import get_ident
from typing import Any, Callable, List, Optional, TypeVar

from ._library import lean, raise_error

T = TypeVar('T')

# Nanoseconds between two checks for signals in a wait for an event.
_SLICE = 20_000_000
_wait = lean('kiln_event_wait')
_is_ready = lean('kiln_event_is_ready')
_release_error = lean('kiln_error_release')
_main = threading.main_thread()


# Seconds given to cancelled work before it is left alone.
_GRACE = 0.02


class Job:
    """A function call and its outcome."""

    __slots__ = ('function', 'result', 'error', 'done')

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.result: Any = None
        self.error: Optional[BaseException] = None
        self.done = threading.Lock()
        self.done.acquire()

    def do(self) -> None:
        """Does it, in the thread that calls."""
        try:
            self.result = self.function()
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error
        self.done.release()

    @property
    def ended(self) -> bool:
        """Whether it is done."""
        return not self.done.locked()

    def wait(self, timeout: float = -1) -> None:
        """Waits until it is done, at most so many seconds."""
        if self.done.acquire(timeout=timeout):
            self.done.release()


class _Worker:
    """A thread that does one job after the other."""

    def __init__(self) -> None:
        self.jobs: 'queue.SimpleQueue[Job]' = queue.SimpleQueue()
        threading.Thread(target=self._work, name='kiln-call', daemon=True).start()

    def _work(self) -> None:
        while True:
            self.jobs.get().do()


_idle: List[_Worker] = []
_left: List[Job] = []  # what was left to end by itself


def _after_fork() -> None:
    global _main
    _main = threading.main_thread()
    _idle.clear()  # the threads are the parent's
    _left.clear()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _await_what_was_left() -> None:
    end = time.monotonic() + 5
    for job in _left:
        job.wait(max(0, end - time.monotonic()))


def interruptible(function: Callable[[], T], cancel: Callable[[], None],
                  leave: Callable[[Job], None] = lambda _job: None) -> T:
    """Calls a function interruptibly: if a signal's handler raises (KeyboardInterrupt), `cancel` is
    called, and the exception propagates when the function has ended, or a moment later. In the
    latter case `leave` is called with a job that ends with the function.
    """
    if get_ident() != _main.ident:
        return function()
    job = Job(function)
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    try:
        worker.jobs.put(job)
        job.done.acquire()
    except BaseException:
        cancel()
        # Unknown here is whether the job has begun: a job queued behind it marks its end.
        last = Job(lambda: _idle.append(worker))
        worker.jobs.put(last)
        try:
            last.wait(_GRACE)
        finally:
            if not last.ended:
                _left[:] = [job for job in _left if not job.ended] + [last]
                leave(last)
        raise
    _idle.append(worker)
    if job.error is not None:
        try:
            raise job.error
        finally:
            del job  # of which the exception's frames hold a reference
    result: T = job.result
    return result


def wait(event: int, timeout: Optional[float] = None) -> None:
    """Waits for an event, at most `timeout` seconds, and lets signals be handled meanwhile. Raises
    the error of its work, or DEADLINE_EXCEEDED.
    """
    limit = -1 if timeout is None else max(0, int(timeout * 1e9))
    if get_ident() != _main.ident:
        error = _wait(event, limit)
    else:
        end = time.monotonic_ns() + limit
        while True:
            left = _SLICE if limit < 0 else max(0, min(_SLICE, end - time.monotonic_ns()))
            error = _wait(event, left)
            if error is None or _is_ready(event):
                break
            if limit >= 0 and time.monotonic_ns() >= end:
                break
            _release_error(error)
    if error is not None:
        raise_error(error)
