#!/usr/bin/python3
"""usage: layers.py REPOSITORY

Reads every #include under src/ and holds it against the layer table of docs/architecture.md: a room
may include itself, what its row names, and what those rooms may include.

The table is the one whose header has the columns "room", "may include" and "libraries". A row whose
room is a path ("runtime/lib", "tools/kiln_opt") speaks of the files whose path begins so; such files
still belong to the room for everyone else. Names are in backquotes; "all above" is every row above.
Rooms behind "; not" are left out of what the others would allow.

JAX's plugin (bindings/jax/plugin) is a user of the C ABI: it may include that, and itself.

What kind a target is, is asked where a kind has its row (see "Backends" on that page), and by devices.
"""

import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
# What the table calls a library, and how its headers begin.
LIBRARIES = {
    'LLVM': ('llvm/', 'llvm-c/'),
    'Eigen': ('Eigen/', 'unsupported/Eigen/'),
    'CLI11': ('CLI/',),
    'nlohmann-json': ('nlohmann/',),
}
# What only these files may ask, by how their paths begin.
KIND = 'target::Kind'
ASKS_FOR_KIND = ('target/', 'kernel/schedule/scheduler.cc', 'compiler/backend.cc', 'device/')
# Folders of src/ that hold no room.
NO_ROOM = {'cmake'}


class Row:
    def __init__(self, room, direct, excluded, libraries):
        self.room = room
        self.direct = direct
        self.excluded = excluded
        self.libraries = libraries


def read_table(text):
    """The rows of the layer table, in order."""
    rows = []
    columns = None
    for line in text.split('\n'):
        if not line.startswith('|'):
            if rows:
                break
            columns = None
            continue
        cells = [c.strip() for c in line.strip().strip('|').split('|')]
        if columns is None:
            names = [c.lower() for c in cells]
            if {'room', 'may include', 'libraries'} <= set(names):
                columns = {n: i for i, n in enumerate(names)}
            continue
        if set(line) <= set('|-: '):
            continue
        room = cells[columns['room']].strip('`').rstrip('/')
        may, _, without = cells[columns['may include']].partition('; not ')
        direct = re.findall(r'`([^`]+)`', may)
        excluded = re.findall(r'`([^`]+)`', without)
        if 'all above' in may:
            direct += [r.room for r in rows]
        direct = [d.rstrip('/') for d in direct]
        libraries = [l for l in LIBRARIES if l in cells[columns['libraries']]]
        rows.append(Row(room, direct, excluded, libraries))
    return rows


def closure(room, rows):
    """All that `room` may include, through its row and the rows of what it names."""
    by_name = {r.room: r for r in rows}
    reached = set()
    waiting = [room]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        if name in by_name:
            waiting += by_name[name].direct
    return reached


def row_of(path, rows):
    """The row with the longest room that `path` (below src/) begins with."""
    best = None
    for row in rows:
        if path == row.room or path.startswith((row.room + '/', row.room + '.')):
            if best is None or len(row.room) > len(best.room):
                best = row
    return best


def table_errors(rows):
    errors = []
    names = [r.room for r in rows]
    for i, row in enumerate(rows):
        if row.room in names[:i]:
            errors.append(f'table: {row.room} has two rows')
        for name in row.direct:
            if name not in names:
                errors.append(f'table: {row.room} may include {name}, which has no row')
            elif names.index(name) >= i:
                errors.append(f'table: {row.room} may include {name}, which stands below it')
    return errors


def check_file(path, text, rows):
    """Errors of one file; `path` is relative to src/."""
    row = row_of(path, rows)
    if row is None:
        return [f'src/{path}: its room has no row in the layer table']
    allowed = closure(row.room, rows) - set(row.excluded)
    errors = []
    if KIND in text and not path.startswith(ASKS_FOR_KIND):
        errors.append(f'src/{path}: asks what kind a target is; that is its backend\'s to know')
    for bracket, included in INCLUDE.findall(text):
        library = next((l for l, begins in LIBRARIES.items() if included.startswith(begins)), None)
        if library:
            if library not in row.libraries:
                errors.append(f'src/{path}: {row.room} may not use {library} ({included})')
            continue
        target = row_of('include/' + included if included.startswith('kiln/') else included, rows)
        if target is None:
            if bracket == '"':
                errors.append(f'src/{path}: "{included}" is not written from src/ or include/')
            continue
        # A part of a room is open to whoever may include the room; the room is not open to a part
        # that has a row of its own.
        parts = {target.room, target.room.split('/')[0] if not target.room.startswith('include')
                 else target.room}
        if not parts & allowed:
            errors.append(f'src/{path}: {row.room} may not include {target.room} ({included})')
    return errors


def check_plugin_file(path, text):
    """Errors of a file of JAX's plugin; `path` is relative to the repository."""
    return [f'{path}: the plugin may not include {included}; only kiln/ and plugin/'
            for bracket, included in INCLUDE.findall(text)
            if not included.startswith(('kiln/', 'plugin/')) and
            (bracket == '"' or '/' in included)]


def check_plugin(root):
    errors, files = [], 0
    for folder, _, names in os.walk(f'{root}/bindings/jax/plugin'):
        for name in sorted(n for n in names if n.endswith(('.h', '.cc'))):
            path = os.path.join(folder, name)
            with open(path) as f:
                errors += check_plugin_file(os.path.relpath(path, root), f.read())
            files += 1
    return errors, files


def check_tree(root):
    with open(f'{root}/docs/architecture.md') as f:
        rows = read_table(f.read())
    if not rows:
        return ['docs/architecture.md: no layer table found'], 0
    errors = table_errors(rows)
    files = 0
    src = f'{root}/src'
    for folder, folders, names in os.walk(src):
        if folder == src:
            folders[:] = [f for f in folders if f not in NO_ROOM]
        for name in sorted(names):
            if not name.endswith(('.h', '.cc', '.c', '.def', '.inc')):
                continue
            path = os.path.relpath(os.path.join(folder, name), src)
            with open(os.path.join(folder, name)) as f:
                errors += check_file(path, f.read(), rows)
            files += 1
    plugin_errors, plugin_files = check_plugin(root)
    return errors + plugin_errors, files + plugin_files


def main():
    errors, files = check_tree(os.path.abspath(sys.argv[1]))
    print('\n'.join(errors) if errors else f'{files} files: layers as in docs/architecture.md')
    return 1 if errors or not files else 0


if __name__ == '__main__':
    sys.exit(main())
