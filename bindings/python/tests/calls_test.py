"""Calls of executables: their speed, donation, cancellation, and Ctrl-C."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy

import kiln
from call_bench import microseconds, small_program


def endless(context, name='endless'):
    """A graph of a loop that ends for no argument but 0."""
    graph = context.graph(name)
    x = graph.parameter('s32', [], 'x')
    condition = context.graph()
    condition.set_results(condition.parameter_like(x) != 0)
    body = context.graph()
    body.set_results(body.parameter_like(x) | 1)
    graph.set_results(graph.while_(x, condition, body))
    return graph


@contextlib.contextmanager
def interrupted(after, times=1):
    """Sends SIGINT to the main thread, as Ctrl-C does; yields when that was."""
    sent = []

    def send():
        for _ in range(times):
            time.sleep(after)
            sent.append(time.monotonic())
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        thread.join()


class CallsTest(unittest.TestCase):

    def setUp(self):
        self.context = kiln.Context(threads=2)
        self.cpu = self.context.device()

    def tearDown(self):
        self.context.close()

    def test_speed(self):
        """A call with buffers takes 3 us, with an array 5; others may work on this machine."""
        executable = small_program(self.context, 3)
        buffers = [self.cpu.zeros('f32', [8]) for _ in range(3)]
        self.assertLess(microseconds(lambda: executable(*buffers), rounds=50), 10)
        array = kiln.zeros(8, 'f32')
        self.assertLess(microseconds(lambda: executable(array, buffers[0], buffers[1]), rounds=50),
                        16)

    def test_calls_of_all_kinds_of_arguments(self):
        executable = small_program(self.context, 2)
        ones = numpy.ones(8, numpy.float32)
        wide = numpy.ones((8, 2), numpy.float32)
        fixed = ones.copy()
        fixed.flags.writeable = False
        buffer = self.cpu.copy(ones)
        for argument in (ones, buffer, fixed, wide[:, 1], ones[::-1], memoryview(ones)):
            for other in (ones, buffer):
                result, = executable(argument, other)
                self.assertEqual(result.tolist(), [3] * 8)
        graph = self.context.graph()
        graph.set_results(graph.parameter('f32') + 1, graph.parameter('s8') + 1)
        mixed = graph.compile()
        self.assertEqual([r.item() for r in mixed(2, True)], [3, 2])
        self.assertEqual([r.item() for r in mixed(numpy.float32(0.5), numpy.int8(4))], [1.5, 5])
        for error, arguments in ((TypeError, (1.0, 2.5)), (OverflowError, (1, 128)),
                                 (TypeError, (1, [1])), (TypeError, ('1', 1)),
                                 (TypeError, (1, None)),
                                 (kiln.KilnError, (1,)), (kiln.KilnError, (1, 2, 3)),
                                 (kiln.KilnError, (numpy.zeros((), 'f8'), 1))):
            with self.assertRaises(error):
                mixed(*arguments)
        self.assertEqual([r.item() for r in mixed(2, 1)], [3, 2])  # mistakes leave nothing behind
        before = self.context.memory.live_bytes
        for _ in range(100):
            executable(ones, buffer)
        self.assertEqual(self.context.memory.live_bytes, before)

    def test_threads_call_at_once(self):
        executable = small_program(self.context, 2, results=3)
        errors = []

        def work(number):
            array = numpy.full(8, number, numpy.float32)
            for _ in range(300):
                for i, result in enumerate(executable(array, array)):
                    if result.tolist() != [3 * number + i] * 8:
                        errors.append(number)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_results_where_they_are_wanted(self):
        executable = small_program(self.context, 1, results=2)
        out = kiln.zeros(8, 'f32')
        place = self.cpu.borrow(out)
        first, second = executable.run([out + 1], [place, None], threads=1)
        self.assertIs(first, place)
        self.assertEqual((out.tolist(), second.tolist()), ([2] * 8, [3] * 8))
        with self.assertRaises(ValueError):
            fixed = kiln.zeros(8, 'f32')
            fixed.flags.writeable = False
            executable.run([out], [self.cpu.borrow(fixed), None])

    def step(self, **options):
        """x * 2 in the memory of x, and the sum of x."""
        graph = self.context.graph()
        x = graph.parameter('f32', [16])
        graph.set_results(x * 2, x.sum())
        return graph.compile(aliases={0: 0}, **options)

    def test_donation(self):
        step = self.step()
        self.assertEqual(step.aliases, {0: 0})
        state = self.cpu.copy(numpy.ones(16, numpy.float32))
        kept, total = step(state)  # not donated: copied
        self.assertNotEqual(kept.address, state.address)
        self.assertEqual(total.item(), 16)
        for donate in (True, [0], (0,)):
            address = state.address
            old = state
            state, total = step(state, donate=donate)
            self.assertEqual(state.address, address)
            with self.assertRaises(kiln.KilnError) as raised:
                old.tobytes()
            self.assertEqual(raised.exception.code, kiln.Code.FAILED_PRECONDITION)
        self.assertEqual(state.tolist(), [8] * 16)
        (state, _), event = step.start([state], donate=True)
        event.wait()
        self.assertEqual(state.address, address)
        (state, _) = step.run([state], donate=[0], threads=1)
        self.assertEqual(state.tolist(), [32] * 16)
        # An array of the caller's, whose memory the result takes over.
        array = kiln.full(16, 1, 'f32')
        result, _ = step(array, donate=True)
        self.assertEqual(result.address, array.ctypes.data)
        del result
        self.assertEqual(array.tolist(), [2] * 16)
        must = self.step(must_donate=True)
        with self.assertRaises(kiln.KilnError):
            must(self.cpu.zeros('f32', [16]))
        with self.assertRaises(kiln.KilnError):
            step(state, donate=[1])
        graph = self.context.graph()
        graph.set_results(graph.parameter('f32', [16]))
        with self.assertRaises(kiln.KilnError):
            graph.compile(aliases={0: 1})

    def test_what_arrays_see_is_not_donated(self):
        step = self.step()
        state = self.cpu.copy(numpy.ones(16, numpy.float32))
        view = numpy.asarray(state)
        self.assertTrue(state.is_shared)
        with self.assertRaisesRegex(ValueError, 'argument 0 cannot be donated'):
            step(state, donate=True)
        part = view[3:]
        del view
        with self.assertRaisesRegex(ValueError, 'argument 0 cannot be donated'):
            step.start([state], donate=[0])
        state.close()
        self.assertFalse(state.closed)
        del part
        gc.collect()
        self.assertFalse(state.is_shared)
        step(state, donate=True)

    def test_a_start_is_cancelled(self):
        executable = endless(self.context).compile()
        (result,), event = executable.start([numpy.int32(1)])
        self.assertFalse(event.ready or result.ready)
        self.assertEqual(repr(event), '<kiln.Event pending>')
        self.assertIn('pending', repr(result))
        with self.assertRaises(kiln.KilnError) as raised:
            event.wait(0.01)
        self.assertEqual(raised.exception.code, kiln.Code.DEADLINE_EXCEEDED)
        event.cancel()
        for wait in (event.wait, lambda: numpy.asarray(result), result.tobytes,
                     lambda: executable(result), lambda: float(result)):
            with self.assertRaises(kiln.KilnError) as raised:
                wait()
            self.assertEqual(raised.exception.code, kiln.Code.CANCELLED)
        # The flag stays for as long as it is looked at, whoever holds the event.
        (result,), event = executable.start([1])
        other = result.event()
        self.assertRaises(ValueError, other.cancel)
        event.cancel()
        del event
        gc.collect()
        with self.assertRaises(kiln.KilnError):
            other.wait()
        cancel = kiln.Cancellation()
        _, event = executable.start([1], cancel=cancel)
        cancel.set()
        with self.assertRaises(kiln.KilnError):
            event.wait()
        cancel.clear()
        executable.run([0], cancel=cancel)

    def quickest_end(self, work, error=KeyboardInterrupt):
        """How long after SIGINT some work raises it, at best."""
        times = []
        for _ in range(20):
            with interrupted(0.05) as sent:
                with self.assertRaises(error):
                    work()
                times.append(time.monotonic() - sent[0])
            if times[-1] < 0.05:
                break
        return min(times)

    def test_ctrl_c(self):
        graph = endless(self.context)
        for device in ('CPU:0', 'REFERENCE:0'):
            executable = graph.compile(self.context.device(device))
            with self.subTest(device=device):
                # pylint: disable=cell-var-from-loop
                self.assertLess(self.quickest_end(lambda: executable(1)), 0.05)
                self.assertEqual(executable(0)[0].item(), 0)
        executable = graph.compile()
        self.assertLess(self.quickest_end(lambda: executable.run([1], threads=1)), 0.05)
        session = kiln.Session(graph)
        self.assertLess(self.quickest_end(
            lambda: session.run({graph.parameters[0]: 1}, [graph.result])), 0.05)
        function = kiln.Function(graph)
        self.assertLess(self.quickest_end(lambda: function(1)), 0.05)
        # Waits end, and what they wait for goes on.
        (result,), event = executable.start([1])
        for wait in (event.wait, lambda: event.wait(60), lambda: numpy.asarray(result),
                     lambda: executable(result)):
            self.assertLess(self.quickest_end(wait), 0.05)
        self.assertFalse(event.ready)
        event.cancel()

    def test_ctrl_c_where_python_is_called(self):
        """Functions are called in the thread that runs the program, where signals are handled."""
        def wait(_call):
            self.assertIs(threading.current_thread(), threading.main_thread())
            time.sleep(60)

        self.context.register_call('wait', wait)
        graph = self.context.graph()
        x = graph.parameter('f32', [2])
        graph.set_results(graph.custom_call('wait', [x], [('f32', [2])]))
        executable = graph.compile()
        array = numpy.zeros(2, numpy.float32)
        self.assertLess(self.quickest_end(lambda: executable(array)), 0.05)

    def test_what_does_not_end_is_left_alone(self):
        """Ctrl-C does not wait for what looks at its flag too seldom; users of what that writes do.
        """
        release = threading.Event()

        def wait(call):
            release.wait(60)
            numpy.asarray(call.results[0])[...] = 5

        with kiln.Context(threads=2, callbacks_from_any_thread=True) as context:
            context.register_call('wait', wait)
            graph = context.graph()
            graph.set_results(graph.custom_call('wait', [graph.parameter('f32')], [('f32', [])]))
            executable = graph.compile()
            place = context.device().zeros('f32')
            self.assertLess(self.quickest_end(lambda: executable.run([1], [place])), 0.05)
            self.assertFalse(place.ready)
            threading.Timer(0.1, release.set).start()
            self.assertEqual(float(place), 5)
            self.assertTrue(release.is_set() and place.ready)
            self.assertEqual(float(executable(1)[0]), 5)

    def test_what_a_function_raised_is_the_cause(self):
        self.context.register_call('fail', lambda call: {}['missing'])
        graph = self.context.graph()
        graph.set_results(graph.custom_call('fail', [graph.parameter('f32', [2])], [('f32', [2])]))
        with self.assertRaises(kiln.KilnError) as raised:
            graph.compile()(numpy.zeros(2, numpy.float32))
        self.assertIsInstance(raised.exception.__cause__, KeyError)
        self.assertIn('missing', raised.exception.message)

    def test_other_handlers_of_signals(self):
        executable = endless(self.context).compile()
        seen = []
        cancel = kiln.Cancellation()

        def handle(number, _frame):
            seen.append(number)
            if len(seen) == 3:
                cancel.set()

        old = signal.signal(signal.SIGINT, handle)
        try:
            # What a handler does not raise does not end the run.
            with interrupted(0.02, times=3), self.assertRaises(kiln.KilnError) as raised:
                executable.run([1], cancel=cancel)
        finally:
            signal.signal(signal.SIGINT, old)
        self.assertEqual(raised.exception.code, kiln.Code.CANCELLED)
        self.assertEqual(len(seen), 3)

    def test_other_threads_run_by_themselves(self):
        executable = endless(self.context).compile()
        cancel = kiln.Cancellation()
        errors = []

        def work():
            try:
                executable.run([1], cancel=cancel)
            except kiln.KilnError as error:
                errors.append(error.code)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.05)
        cancel.set()
        thread.join()
        self.assertEqual(errors, [kiln.Code.CANCELLED])

    @unittest.skipUnless(hasattr(os, 'fork'), 'no fork')
    def test_a_child_has_workers_of_its_own(self):
        """A worker of the parent's does not do the child's work."""
        from kiln._interrupt import interruptible
        self.assertEqual(interruptible(lambda: 1, lambda: None), 1)
        child = os.fork()
        if child == 0:
            try:
                status = 0 if interruptible(lambda: 2, lambda: None) == 2 else 1
            except BaseException:  # pylint: disable=broad-except
                status = 1
            os._exit(status)
        deadline = time.monotonic() + 60
        done = (0, 0)
        while done == (0, 0) and time.monotonic() < deadline:
            done = os.waitpid(child, os.WNOHANG)
            time.sleep(0.01)
        if done == (0, 0):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.assertEqual(done, (child, 0))

    def test_a_process_ends_while_work_goes_on(self):
        program = '\n'.join((
            'import sys, numpy, kiln',
            'sys.path.insert(0, {!r})'.format(os.path.dirname(os.path.abspath(__file__))),
            'from calls_test import endless',
            'context = kiln.Context(threads=2)',
            'executable = endless(context).compile()',
            'results, event = executable.start([numpy.int32(1)])',
            'print("started", flush=True)'))
        for _ in range(3):
            done = subprocess.run([sys.executable, '-c', program], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b'started\n', b''))

    def test_ctrl_c_ends_a_program(self):
        program = '\n'.join((
            'import sys, kiln',
            'sys.path.insert(0, {!r})'.format(os.path.dirname(os.path.abspath(__file__))),
            'from calls_test import endless',
            'executable = endless(kiln.Context()).compile()',
            'print("started", flush=True)',
            'executable(1)'))
        child = subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.assertEqual(child.stdout.readline(), b'started\n')
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertTrue(errors.strip().endswith(b'KeyboardInterrupt'), errors)

    def test_a_product_ends_at_the_time_limit(self):
        size = 2560  # of one kernel, which looks for itself
        graph = self.context.graph()
        x = graph.parameter('f32', [size, size], 'x')
        graph.set_results(x @ x)
        executable = graph.compile()
        value = numpy.ones([size, size], 'float32')

        def work(limit):
            start = time.process_time()
            if limit is None:
                executable.run([value])
            else:
                with self.assertRaises(kiln.KilnError) as raised:
                    executable.run([value], timeout=limit)
                self.assertEqual(raised.exception.code, kiln.Code.DEADLINE_EXCEEDED)
                time.sleep(0.1)  # what goes on in the background
            return time.process_time() - start

        self.assertLess(work(0.005), work(None) / 2)

    def test_words(self):
        executable = small_program(self.context, 2)
        self.assertRegex(repr(executable), r'<kiln.Executable \(\S+: f32\[8\], \S+: f32\[8\]\) -> '
                                           r'\(f32\[8\]\) on CPU:0>')
        graph = endless(self.context)
        self.assertEqual(repr(graph), '<kiln.Graph (x: s32[]) -> s32[]>')
        self.assertIn('no results', repr(self.context.graph()))
        self.assertIn('CPU:0', repr(self.context))
        self.assertIn('2 threads', repr(self.context))
        buffer = self.cpu.zeros('bf16', [2])
        self.assertEqual(repr(buffer), '<kiln.Buffer bf16[2] on CPU:0>')
        for item in (buffer, graph, executable, kiln.Session(graph)):
            item.close()
            self.assertTrue(item.closed)
            self.assertIn('closed', repr(item))
        with self.assertRaisesRegex(AttributeError, 'nonsense'):
            buffer.nonsense  # pylint: disable=pointless-statement


if __name__ == '__main__':
    unittest.main()
