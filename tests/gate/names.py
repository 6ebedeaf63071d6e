#!/usr/bin/python3
"""usage: names.py REPOSITORY

Holds the files, rooms and tools that the documentation and the comments name against the tree.

- A path in backquotes in README.md or docs/*.md (`passes/fusion/grow.h`, `tests/unit`,
  `kernel/schedule/cpu`) must be a file or a folder of the repository, or the end of a file's path.
  Braces are expanded; a star takes anything; `_test.py` is how names end.
- The same holds for names of sources in comments of src, tests and include.
- Each row of the layer table in docs/architecture.md must be a folder or a file of src, include or
  the repository, with a source in it, and each folder of src a row.
- Words in backquotes that begin as the tools' names do (`kiln-run`) must be programs of the build.
"""

import fnmatch
import os
import re
import subprocess
import sys

SOURCE = r'(?:h|cc|c|def|py|hlo|md|sh|cmake|map)'
# Files of others, and those that runs write.
FOREIGN = {
    'cuda.h', 'cupti.h', 'cublasLt.h', 'dlpack.h', 'math.h', 'pjrt_c_api.h', 'stdint.h', 'stdio.h',
    'string.h',
}
# What the CMake files call their programs.
PROGRAM = re.compile(r'(?:add_executable|add_library|kiln_tool)\(\s*([\w.-]+)')


def tree(root):
    """The paths of all files that git has or would have, and of their folders."""
    out = subprocess.run(['git', '-C', root, 'ls-files', '-co', '--exclude-standard'],
                         capture_output=True, text=True)
    if out.returncode == 0:
        files = [f for f in out.stdout.split('\n') if f and os.path.exists(os.path.join(root, f))]
    else:  # an archive of the sources
        files = []
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f not in ('.git', 'build')]
            files += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    folders = set()
    for path in files:
        while path := os.path.dirname(path):
            folders.add(path)
    return set(files), folders


def expanded(text):
    """`a/{b,c}.h` as a/b.h and a/c.h."""
    match = re.search(r'\{([^{}]*)\}', text)
    if not match:
        return [text]
    return [p for part in match.group(1).split(',')
            for p in expanded(text[:match.start()] + part.strip() + text[match.end():])]


class Tree:
    def __init__(self, root):
        self.files, self.folders = tree(root)
        self.ends = set()
        for path in self.files | self.folders:
            parts = path.split('/')
            for i in range(len(parts)):
                self.ends.add('/'.join(parts[i:]))

    def has(self, name):
        name = name.rstrip('/')
        if name.startswith('_'):
            name = '*' + name
        if '*' in name:
            return any(fnmatch.fnmatch(e, name) for e in self.ends)
        return name in self.ends


def path_errors(where, text, tree):
    """Paths and sources in backquotes."""
    errors = []
    for quoted in re.findall(r'`([^`\n]+)`', text):
        if re.search(r'[\s<>()=$"\']|::|^-|NAME|\.\.', quoted) or quoted.startswith(('/', '~', 'build/')):
            continue
        is_source = re.fullmatch(r'[\w./{},*-]+\.' + SOURCE + r'(?:\})?', quoted)
        is_folder = re.fullmatch(r'(?:src|tests|bindings|docs|include)/[\w./{},*-]+', quoted)
        if not is_source and not is_folder:
            continue
        for name in expanded(quoted):
            if os.path.basename(name) not in FOREIGN and not tree.has(name):
                errors.append(f'{where}: there is no {name}')
    return errors


def comment_errors(where, text, tree):
    """Sources that C++, C and Python comments name."""
    errors = []
    comments = re.findall(r'//(.*)|/\*(.*?)\*/|^\s*#(?!include)(.*)', text, re.DOTALL | re.MULTILINE) \
        if where.endswith('.py') else re.findall(r'//([^\n]*)|/\*(.*?)\*/', text, re.DOTALL)
    for groups in comments:
        for comment in groups:
            for name in re.findall(r'(?<![\w/.<])[\w/]+\.(?:h|cc|def)\b', comment):
                if os.path.basename(name) not in FOREIGN and not tree.has(name):
                    errors.append(f'{where}: a comment names {name}, which is not there')
    return errors


def room_errors(text, tree):
    """The layer table against the folders."""
    errors = []
    rooms = re.findall(r'^\| `([\w/.]+)` \|', text, re.MULTILINE)
    for room in rooms:
        places = [room, 'src/' + room] + [f'src/{room}{end}' for end in ('.cc', '.h')]
        if not any(p in tree.files or p in tree.folders for p in places):
            errors.append(f'docs/architecture.md: there is no room {room}')
    for folder in tree.folders:
        parts = folder.split('/')
        if len(parts) == 2 and parts[0] == 'src' and parts[1] not in rooms and parts[1] != 'cmake':
            errors.append(f'docs/architecture.md: src/{parts[1]} has no row in the layer table')
    return errors


def tool_errors(where, text, programs):
    return [f'{where}: there is no program {name}'
            for name in set(re.findall(r'`(kiln-[a-z-]+)', text)) if name not in programs]


def main(root):
    t = Tree(root)
    read = lambda path: open(os.path.join(root, path), encoding='utf-8').read()
    programs = set()
    for path in t.files:
        if os.path.basename(path) == 'CMakeLists.txt':
            programs |= set(PROGRAM.findall(read(path)))
    errors = []
    for path in sorted(t.files):
        if path == 'README.md' or re.fullmatch(r'docs/[\w-]+\.md', path):
            text = read(path)
            errors += path_errors(path, text, t) + tool_errors(path, text, programs)
            if path == 'docs/architecture.md':
                errors += room_errors(text, t)
        elif re.match(r'(?:src|tests|include)/.*\.(?:h|cc|c|def)$', path):
            errors += comment_errors(path, read(path), t)
    for error in errors:
        print(error)
    print(f'{len(t.files)} files: {len(errors)} names without a file')
    return 1 if errors else 0


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
