#!/usr/bin/python3
"""usage: page_test.py KILN_RUN KILN_OPT [--shots DIR]

The pages and pictures that kiln-run and kiln-opt write, looked at in a headless browser: what is
drawn, the search, fusions that open, zoom by wheel, drag, the sheets of passes and text; and 10,000
nodes within limits of time, several times what an idle machine takes. --shots keeps screenshots.
Exits with 77 where there is no browser.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import browser  # noqa: E402

SHOTS = None
if '--shots' in sys.argv:
    SHOTS = sys.argv[-1]
    del sys.argv[-2:]
OPT = sys.argv.pop()
RUN = sys.argv.pop()

# The program of the manual's picture.
MODULE = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                      '../../docs/pictures/attention.hlo')
NODES = 14
# Milliseconds. An idle machine of two cores takes 250, 5 and 25.
MOST_TO_FIRST_PAINT, MOST_TO_SEARCH, MOST_TO_DRAW = 3000, 1000, 500


def large_module(count):
    """An entry of `count` instructions, with links near and far."""
    chance = random.Random(1)
    lines = ['  v0 = f32[64] parameter(0)']
    for i in range(1, count):
        near, far = (max(0, i - chance.randint(1, reach)) for reach in (12, 300))
        if i % 10 == 0:
            lines.append(f'  v{i} = f32[64] parameter({i // 10})')
        else:
            op = chance.choice(('add', 'multiply', 'subtract', 'maximum'))
            lines.append(f'  {"ROOT " if i == count - 1 else ""}v{i} = f32[64] {op}(v{near}, v{far})')
    return 'HloModule large\nENTRY main {\n' + '\n'.join(lines) + '\n}\n'


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Processes of the browser may outlive it for a moment.
        cls.scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.folder = cls.scratch.name
        cls.browser = browser.Browser(PROGRAM, f'{cls.folder}/profile')
        done = subprocess.run([RUN, f'--html={cls.folder}', f'--svg={cls.folder}', '--iterations=3',
                               MODULE], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.scratch.cleanup()

    def setUp(self):
        self.browser.problems.clear()

    def tearDown(self):
        if SHOTS:
            self.browser.screenshot(f'{SHOTS}/{self._testMethodName}.png')
        self.assertEqual(self.browser.problems, [])

    def open(self, name='attention.html'):
        self.browser.open(f'{self.folder}/{name}')
        self.browser.wait('window.kiln && kiln.state().firstPaint > 0')

    def tab(self, name):
        self.browser.click_on(f'[...document.querySelectorAll("#tabs button")]'
                              f'.find(b => b.textContent === "{name}")')

    def state(self):
        # Behind the next frame, in which a change is drawn.
        return self.browser.value('new Promise(done => requestAnimationFrame(() => '
                                  'requestAnimationFrame(() => done(kiln.state()))))')

    def colour_at(self, x, y):
        return self.browser.value(
            f'(() => {{ const c = document.getElementById("canvas"), r = c.getBoundingClientRect();'
            f'return [...c.getContext("2d").getImageData(({x} - r.left) * devicePixelRatio, '
            f'({y} - r.top) * devicePixelRatio, 1, 1).data] }})()')

    def test_graphs_before_and_after(self):
        self.open()
        state = self.state()
        self.assertEqual((state['graph'], state['boxes'], state['open']), ('before', NODES, 0))
        # A box has the colour of its op where no text is.
        left, top, right, bottom = self.browser.value('kiln.boxOf("s")')
        self.assertEqual(self.colour_at(right - 3, bottom - 3), [0xa7, 0xc7, 0xe7, 255])
        self.tab('after')
        state = self.state()
        self.assertEqual(state['graph'], 'after')
        self.assertLess(state['boxes'], NODES)
        # Kernels have times, which are in the list with the longest first.
        rows = self.browser.value('[...document.querySelectorAll("#panel .row")].map(r => r.textContent)')
        self.assertGreaterEqual(len(rows), 2)
        for row in rows:
            self.assertRegex(row, r'^[\d.]+ [um]s  ')
        self.assertGreater(self.browser.value('graph.nanoseconds'), 0)

    def test_search(self):
        self.open()
        self.browser.key('/')
        self.browser.type('reduce')
        self.assertEqual(self.state()['matches'], 2)
        self.assertEqual(self.browser.value('document.getElementById("found").textContent'), '2 found')
        for expected in ('m', 'z', 'm'):
            self.browser.key('Enter')
            self.assertEqual(self.state()['selected'], expected)
        # Where it comes from, and several words; then nothing.
        self.browser.value('document.getElementById("search").select()')
        self.browser.type('QUERY f32[64')
        self.assertEqual(self.state()['matches'], 1)
        self.browser.type(' absent')
        self.assertEqual(self.state()['matches'], 0)

    def test_boxes_open(self):
        self.open()
        self.tab('after')
        before = self.state()
        name = self.browser.value('scene.boxes.find(b => b.node[OP] === data.ops.findIndex('
                                  'o => o[0] === "fusion")).node[NAME]')
        left, top, right, bottom = self.browser.value(f'kiln.boxOf("{name}")')
        self.browser.click(right - 4, top + 4)
        state = self.state()
        self.assertEqual((state['open'], state['selected']), (1, name))
        self.assertGreater(state['boxes'], before['boxes'] + 2)
        outer = self.browser.value(f'kiln.boxOf("{name}")')
        self.assertAlmostEqual(outer[0], left, delta=1)  # it stays where it was
        self.assertAlmostEqual(outer[1], top, delta=1)
        self.assertGreater(outer[3] - outer[1], bottom - top)
        inside = self.browser.value(
            'scene.boxes.filter(b => b.path.split(":").length === 2).map(b => kiln.boxOf(b.node[NAME]))')
        self.assertEqual(len(inside), state['boxes'] - before['boxes'])
        for box in inside:
            self.assertTrue(outer[0] <= box[0] and outer[1] <= box[1] and
                            box[2] <= outer[2] and box[3] <= outer[3], (outer, box))
        self.browser.click(outer[2] - 4, outer[1] + 4)
        self.assertEqual(self.state()['boxes'], before['boxes'])
        self.browser.click_on('document.getElementById("open")')
        self.assertGreater(self.state()['open'], 0)
        self.browser.click_on('document.getElementById("close")')
        self.assertEqual(self.state()['open'], 0)

    def test_zoom_and_drag(self):
        self.open()
        before, box = self.state()['view'], self.browser.value('kiln.boxOf("e")')
        x, y = box[0] + 5, box[1] + 5
        self.browser.mouse('mouseWheel', x, y, deltaX=0, deltaY=-400)
        view, zoomed = self.state()['view'], self.browser.value('kiln.boxOf("e")')
        factor = view['scale'] / before['scale']
        self.assertGreater(factor, 1.5)
        self.assertAlmostEqual(x - zoomed[0], 5 * factor, delta=0.5)  # what is below the pointer stays
        self.assertAlmostEqual(y - zoomed[1], 5 * factor, delta=0.5)
        self.browser.mouse('mousePressed', 300, 300, button='left', clickCount=1)
        for step in range(1, 6):
            self.browser.mouse('mouseMoved', 300 + 20 * step, 300 + 10 * step, button='left', buttons=1)
        self.browser.mouse('mouseReleased', 400, 350, button='left', clickCount=1)
        moved = self.browser.value('kiln.boxOf("e")')
        self.assertAlmostEqual(moved[0] - zoomed[0], 100, delta=1)
        self.assertAlmostEqual(moved[1] - zoomed[1], 50, delta=1)
        self.assertIsNone(self.state()['selected'])
        self.browser.click_on('document.getElementById("fit")')
        self.assertAlmostEqual(self.state()['view']['scale'], before['scale'], delta=1e-6)

    def test_panel(self):
        self.open()
        self.tab('before')
        box = self.browser.value('kiln.boxOf("d")')
        self.browser.click((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        self.assertEqual(self.state()['selected'], 'd')
        text = self.browser.value('document.getElementById("panel").textContent')
        self.assertIn('%d = f32[64,64]{1,0} subtract(%s, %mb)', text)
        self.browser.click_on('[...document.querySelectorAll("#panel .row")]'
                              '.find(r => r.textContent.includes("exponential"))')
        self.assertEqual(self.state()['selected'], 'e')

    def test_passes(self):
        self.open()
        self.tab('passes')
        rows = self.browser.value('data.passes.length')
        self.assertGreater(rows, 20)
        names = self.browser.value('data.passes.map(p => p.pass)')
        self.assertEqual(names[0], 'pipeline-start')
        self.assertEqual(names[-1], 'schedule')
        self.assertLess(names.index('dce'), names.index('fusion'))
        self.browser.click_on('[...document.querySelectorAll("tr.pass")]'
                              '.find(r => r.textContent.includes("dce"))')
        text = self.browser.value('document.getElementById("sheet").textContent')
        self.assertIn('- %unused = f32[64,64]{1,0} negate(%d)', text)
        self.assertIn('negate 1 \u2192 0', text)

    def test_text(self):
        self.open()
        self.tab('text')
        text = self.browser.value('document.getElementById("sheet").textContent')
        self.assertIn('ENTRY main {', text)
        self.assertIn('op_name="query"', text)
        self.browser.click_on('[...document.querySelectorAll("#sheet a")].find(a => a.textContent === "%zb")')
        state = self.state()
        self.assertEqual((state['graph'], state['selected']), ('before', 'zb'))

    def test_picture(self):
        for name in ('before', 'after'):
            self.browser.open(f'{self.folder}/attention.{name}.svg')
            self.assertEqual(self.browser.value('document.documentElement.tagName'), 'svg')
            self.assertEqual(self.browser.value('document.querySelectorAll("parsererror").length'), 0)
            texts = self.browser.value('[...document.querySelectorAll("g text")].map(t => t.textContent)')
            self.assertEqual(sum(t == 'exponential' for t in texts), 1)
            # No two boxes overlap, but for those that are inside of others.
            overlaps = self.browser.value('''(() => {
              const boxes = [...document.querySelectorAll('g rect')].map(r => r.getBBox());
              const inside = (a, b) => a.x >= b.x && a.y >= b.y && a.x + a.width <= b.x + b.width &&
                                       a.y + a.height <= b.y + b.height;
              return boxes.flatMap((a, k) => boxes.slice(k + 1).filter(b =>
                a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height &&
                b.y < a.y + a.height && !inside(a, b) && !inside(b, a))).length; })()''')
            self.assertEqual(overlaps, 0)
        self.assertTrue(any(re.match(r'[\d.]+ [um]s  ', t) for t in texts), texts)

    def test_large_graph(self):
        count = 10000
        with open(f'{self.folder}/large.hlo', 'w') as file:
            file.write(large_module(count))
        with open(f'{self.folder}/large.html', 'w') as file:
            subprocess.run([OPT, '--emit', 'html', f'{self.folder}/large.hlo'], stdout=file, check=True)
        self.open('large.html')
        state = self.state()
        self.assertEqual(state['boxes'], count)
        self.browser.key('/')
        self.browser.type('v777')
        found = self.state()
        self.assertEqual(found['matches'], 11)
        self.browser.key('Enter')
        self.assertEqual(self.state()['selected'], 'v777')
        self.browser.key('Escape')
        self.browser.key('f')  # all of it
        whole = self.state()
        self.assertLess(whole['view']['scale'], 0.05)
        for _ in range(4):
            self.browser.mouse('mouseWheel', 500, 500, deltaX=0, deltaY=-500)
        near = self.state()
        self.assertGreater(near['view']['scale'], 2 * whole['view']['scale'])
        size = os.path.getsize(f'{self.folder}/large.html') / 1e6
        print(f'{count} nodes, {size:.1f} MB: first paint {state["firstPaint"]:.0f} ms, search '
              f'{found["lastSearch"]:.1f} ms, all drawn in {whole["lastDraw"]:.0f} ms, a part in '
              f'{near["lastDraw"]:.1f} ms')
        self.assertLess(state['firstPaint'], MOST_TO_FIRST_PAINT)
        self.assertLess(found['lastSearch'], MOST_TO_SEARCH)
        self.assertLess(whole['lastDraw'], MOST_TO_DRAW)


PROGRAM = browser.find()
if not PROGRAM:
    print(f'skipped: there is none of {", ".join(browser.NAMES)}')
    sys.exit(77)
if __name__ == '__main__':
    unittest.main()
