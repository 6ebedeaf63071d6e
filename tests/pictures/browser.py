"""A headless browser, driven by Chromium's DevTools protocol over a pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ('chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome')


def find():
    """The path of a browser, or None. KILN_BROWSER names another one."""
    named = os.environ.get('KILN_BROWSER')
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One window, with one page at a time."""

    def __init__(self, program, profile, width=1400, height=900):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def pass_pipes():
            # The browser reads from descriptor 3 and writes to 4, which may be pipes of this process.
            os.dup2(to_read, 103)
            os.dup2(to_write, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        # As root, or in a container, there is no sandbox; the pages are our own.
        self._process = subprocess.Popen(
            [program, '--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe',
             '--disable-dev-shm-usage', f'--user-data-dir={profile}', f'--window-size={width},{height}'],
            preexec_fn=pass_pipes, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._bytes, self._number, self._session = b'', 0, None
        self.problems = []  # exceptions, and errors and warnings of the console
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        attached = self.call('Target.attachToTarget', targetId=target, flatten=True)
        self._session = attached['sessionId']
        for domain in ('Page', 'Runtime', 'Log'):
            self.call(f'{domain}.enable')

    def close(self):
        self._session = None
        try:
            self.call('Browser.close')
            self._process.wait(20)
        except (EOFError, OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def _message(self, deadline):
        while b'\0' not in self._bytes:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError('the browser does not answer')
            more = os.read(self._read, 1 << 16)
            if not more:
                raise EOFError('the browser has ended')
            self._bytes += more
        message, self._bytes = self._bytes.split(b'\0', 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self._number += 1
        message = {'id': self._number, 'method': method, 'params': parameters}
        if self._session:
            message['sessionId'] = self._session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self._write, data):]
        deadline = time.monotonic() + 60
        while True:
            answer = self._message(deadline)
            if answer.get('id') == self._number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']
            self._note(answer)

    def _note(self, event):
        parameters = event.get('params', {})
        if event.get('method') == 'Runtime.exceptionThrown':
            self.problems.append(parameters['exceptionDetails'])
        elif event.get('method') == 'Runtime.consoleAPICalled':
            if parameters['type'] in ('error', 'warning', 'assert'):
                self.problems.append(parameters)
        elif event.get('method') == 'Log.entryAdded':
            if parameters['entry']['level'] in ('error', 'warning'):
                self.problems.append(parameters['entry'])

    def value(self, expression):
        """The value of an expression in the page."""
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True,
                           awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(f'{expression}: {result["exceptionDetails"]}')
        return result['result'].get('value')

    def wait(self, expression, seconds=30):
        deadline = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def open(self, path):
        self.call('Page.navigate', url=f'file://{path}')
        self.wait('document.readyState === "complete"')

    def mouse(self, kind, x, y, **parameters):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **parameters)

    def click(self, x, y):
        for kind in ('mousePressed', 'mouseReleased'):
            self.mouse(kind, x, y, button='left', clickCount=1)

    def click_on(self, element):
        """Clicks into the middle of what an expression gives."""
        self.click(*self.value(f'(() => {{ const r = ({element}).getBoundingClientRect();'
                               ' return [(r.left + r.right) / 2, (r.top + r.bottom) / 2]; })()'))

    def key(self, key):
        text = {'text': key} if len(key) == 1 else {'text': '\r'} if key == 'Enter' else {}
        self.call('Input.dispatchKeyEvent', type='keyDown', key=key, **text)
        self.call('Input.dispatchKeyEvent', type='keyUp', key=key)

    def type(self, text):
        self.call('Input.insertText', text=text)

    def screenshot(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.call('Page.captureScreenshot')['data']))
