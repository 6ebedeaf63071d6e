"""A plugin of pytest: each case's begin and outcome as a line of JSON in KILN_CASE_LOG.

Lines are written at once, so that the last case of a process that ended is known. Cases with an
outcome in the file are left out: a file that ended its process is taken up behind that case. Of the
others, every Nth is taken, for an N in KILN_CASE_SHARE.
"""

import json
import os
import re

_LONGEST = 400


def _name(nodeid):
    """The case without its folder: file.py::Class::test."""
    path, _, rest = nodeid.partition('::')
    return f'{os.path.basename(path)}::{rest}'


def _said(report):
    """What a failure or a skip said, in one line."""
    if report.outcome == 'skipped' and isinstance(report.longrepr, tuple):
        text = report.longrepr[2]
    else:
        crash = getattr(report.longrepr, 'reprcrash', None)
        text = crash.message if crash else str(report.longrepr)
    return re.sub(r'\s+', ' ', text).strip()[:_LONGEST]


class _Log:
    def __init__(self, path):
        self.done = set()
        if os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                self.done = {row['case'] for row in map(json.loads, f) if 'outcome' in row}
        self.file = open(path, 'a', encoding='utf-8')
        self.outcomes = {}

    def write(self, **row):
        self.file.write(json.dumps(row) + '\n')
        self.file.flush()

    def pytest_collection_modifyitems(self, config, items):
        share = items[::int(os.environ.get('KILN_CASE_SHARE', '1'))]
        left = [i for i in share if _name(i.nodeid) not in self.done]
        taken = {id(i) for i in left}
        config.hook.pytest_deselected(items=[i for i in items if id(i) not in taken])
        items[:] = left

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(case=_name(report.nodeid), outcome='failed', said=_said(report), seconds=0)

    def pytest_runtest_logstart(self, nodeid):
        self.write(case=_name(nodeid))

    def pytest_runtest_logreport(self, report):
        # Set-up, call and tear-down have a report each; the worst one is the outcome.
        row = self.outcomes.setdefault(report.nodeid,
                                       {'outcome': 'passed', 'said': '', 'seconds': 0})
        row['seconds'] += report.duration
        if report.outcome != 'passed' and row['outcome'] != 'failed':
            row['outcome'], row['said'] = report.outcome, _said(report)

    def pytest_runtest_logfinish(self, nodeid):
        row = self.outcomes.pop(nodeid)
        row['seconds'] = round(row['seconds'], 2)
        self.write(case=_name(nodeid), **row)


def pytest_configure(config):
    config.pluginmanager.register(_Log(os.environ['KILN_CASE_LOG']), 'kiln-case-log')
