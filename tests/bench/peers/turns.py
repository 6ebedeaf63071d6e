"""Processes that are measured in turn: each library has one, with its own environment and threads."""

import json
import os
import subprocess


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
