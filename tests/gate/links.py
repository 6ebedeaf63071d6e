#!/usr/bin/python3
"""usage: links.py REPOSITORY

Relative links in README.md and docs/ lead to a file, and to a heading where they name one.
"""

import os
import re
import sys

LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')


def anchors(text):
    """GitHub's names for the headings of a page."""
    headings = re.findall(r'^#+\s+(.*?)\s*$', text, re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', h.lower()).replace(' ', '-') for h in headings}


def main():
    root = os.path.abspath(sys.argv[1])
    pages = [f'{root}/README.md'] + [
        os.path.join(folder, name) for top in ('docs', 'bindings')
        for folder, _, names in os.walk(f'{root}/{top}') for name in names if name.endswith('.md')]
    errors = []
    count = 0
    for page in pages:
        with open(page) as f:
            text = re.sub(r'^```.*?^```', '', f.read(), flags=re.MULTILINE | re.DOTALL)
        for link in LINK.findall(text):
            if re.match(r'[a-z]+:', link):
                continue
            count += 1
            path, _, anchor = link.partition('#')
            target = os.path.join(os.path.dirname(page), path) if path else page
            where = os.path.relpath(page, root)
            if not os.path.exists(target):
                errors.append(f'{where}: no {link}')
            elif anchor and target.endswith('.md'):
                with open(target) as f:
                    if anchor not in anchors(f.read()):
                        errors.append(f'{where}: no heading {link}')
    print('\n'.join(errors) if errors else f'{count} links lead somewhere')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
