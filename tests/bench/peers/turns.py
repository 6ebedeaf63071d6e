"""Processes that are measured in turn: each library has one, with its own environment and threads."""

import json
import os
import subprocess
import time


class Worker:
    """A process that answers commands, a line each, with a line of JSON each (`serve`)."""

    def __init__(self, name, command, environment):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=environment)

    def ask(self, command):
        """The answer to a command."""
        self.process.stdin.write(command + '\n')
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f'{self.name} ended in: {command}')
        return json.loads(line)

    def end(self):
        """Waits until it has ended."""
        self.process.stdin.close()
        self.process.wait()


def answers():
    """A file for answers: standard output, whose place standard error takes for what libraries print."""
    file = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    return file


def serve(lines, file, functions):
    """Answers commands. A function's name is the first word; the rest is its argument."""
    for line in lines:
        command, _, argument = line.rstrip('\n').partition(' ')
        try:
            answer = functions[command](argument)
        except Exception as error:  # pylint: disable=broad-except
            answer = {'error': f'{type(error).__name__}: {error}'[:300]}
        print(json.dumps(answer), file=file, flush=True)


def rest():
    """Sleeps until the threads that other processes have left spinning sleep, too: ONNX Runtime's take
    0.06 s.
    """
    time.sleep(0.1)


def seconds_per_call(run, seconds):
    """The time of a call, of calls one after another for so long: `call` begins one, `wait` ends all."""
    run.call()
    run.wait()
    start, calls = time.perf_counter(), 0
    while calls < 2 or time.perf_counter() - start < seconds:
        run.call()
        calls += 1
        if calls % 16 == 0:
            run.wait()
    run.wait()
    return (time.perf_counter() - start) / calls


def add_arguments(parser, rounds):
    """The arguments of comparisons."""
    parser.add_argument('--json', help='a file that lines of JSON are appended to')
    parser.add_argument('--rounds', type=int, default=rounds)
    parser.add_argument('--seconds', type=float, default=0.2, help='of a round')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('cases', nargs='*')


def chosen(names, options):
    return [name for name in names if not options.cases or any(case in name for case in options.cases)]


def report(records, row, agrees, options):
    """Prints records as they come, and keeps them; the names of those that do not agree."""
    failed = []
    for record in records:
        print(row(record), flush=True)
        if not agrees(record):
            failed.append(record['name'])
        keep(record, options)
    return failed


def keep(record, options):
    """Appends a record to the file of --json."""
    if options.json:
        with open(options.json, 'a', encoding='utf-8') as lines:
            print(json.dumps({'threads': options.threads, **record}), file=lines)
