#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Looks at pages of dat_trace --html in headless Chromium, by its DevTools protocol over a pipe.
#   browser.py CHECK PAGE [ARGUMENT]...
#   slices PAGE EXPECTED  the page has exactly the slices of EXPECTED, a JSON of sequences
#   broken PAGE TEXT...   a click on a BROKEN slice shows these texts
#   many PAGE NUMBER      so many operations load, can be zoomed into and be chosen
# Each check also wants: no error in the console, no request to a network, text within its boxes, in
# the light, the dark, and at 200 %. DAT_TRACE_SHOTS=DIR keeps pictures.
import base64
import json
import os
import subprocess
import sys
import tempfile
import time

LIMIT_S = 120


class Browser:
    def __init__(self):
        self.home = tempfile.TemporaryDirectory(prefix='dat-trace-', ignore_cleanup_errors=True)
        to_r, self.to_w = os.pipe()
        self.from_r, from_w = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        command = ['chromium', '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run',
                   '--disable-background-networking', '--disable-component-update',
                   '--disable-dev-shm-usage', '--disable-extensions', '--hide-scrollbars',
                   '--host-resolver-rules=MAP * ~NOTFOUND', '--user-data-dir=' + self.home.name,
                   '--remote-debugging-pipe', 'about:blank']

        # High numbers first, so that neither dup2 closes what the other needs.
        def descriptors():
            read_end, write_end = os.dup(to_r), os.dup(from_w)
            while read_end < 5:
                read_end = os.dup(read_end)
            while write_end < 5:
                write_end = os.dup(write_end)
            os.dup2(read_end, 3)
            os.dup2(write_end, 4)

        self.process = subprocess.Popen(command, preexec_fn=descriptors, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_r)
        os.close(from_w)
        self.buffer = b''
        self.number = 0
        self.session = None
        self.faults = []
        self.requests = []
        self.loaded = False
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(domain + '.enable')

    # Asked to, it ends its own processes first, and none writes to its folder any more.
    def close(self):
        try:
            self.session = None
            self.call('Browser.close')
            self.process.wait(LIMIT_S)
        except (OSError, SystemExit, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.home.cleanup()

    def read(self):
        while b'\0' not in self.buffer:
            more = os.read(self.from_r, 1 << 20)
            if not more:
                raise SystemExit('Chromium has ended')
            self.buffer += more
        line, self.buffer = self.buffer.split(b'\0', 1)
        message = json.loads(line)
        method, p = message.get('method'), message.get('params', {})
        if method == 'Runtime.exceptionThrown':
            self.faults.append('exception: ' + json.dumps(p['exceptionDetails'])[:300])
        elif method == 'Runtime.consoleAPICalled' and p['type'] in ('error', 'warning', 'assert'):
            self.faults.append('console: ' + json.dumps(p['args'])[:300])
        elif method == 'Log.entryAdded' and p['entry']['level'] in ('error', 'warning'):
            self.faults.append('log: ' + p['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requests.append(p['request']['url'])
        elif method == 'Page.loadEventFired':
            self.loaded = True
        return message

    def call(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.to_w, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.read()
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise SystemExit(f'{method}: {answer["error"]}')
                return answer['result']

    # The value of an expression; a promise is waited for.
    def value(self, expression):
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True,
                           awaitPromise=True)
        if 'exceptionDetails' in result:
            raise SystemExit(f'{expression}: {json.dumps(result["exceptionDetails"])[:500]}')
        return result['result'].get('value')

    # Two frames later everything that was asked for is drawn.
    def settle(self):
        self.value('new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))'
                   '.then(() => true)')

    def open(self, page):
        self.loaded = False
        self.call('Page.navigate', url='file://' + os.path.abspath(page))
        end = time.monotonic() + LIMIT_S
        while not self.loaded and time.monotonic() < end:
            self.read()
        self.settle()

    def size(self, width, height, scale):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)

    def dark(self, on):
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if on else 'light'}])

    def key(self, key):
        for kind in ('keyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key,
                      text=key if kind == 'keyDown' and len(key) == 1 else '')
        self.settle()

    def click(self, x, y):
        for kind in ('mousePressed', 'mouseReleased'):
            self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='left', clickCount=1)
        self.settle()

    def picture(self, name):
        where = os.environ.get('DAT_TRACE_SHOTS')
        if where:
            data = self.call('Page.captureScreenshot', format='png')['data']
            with open(os.path.join(where, name + '.png'), 'wb') as file:
                file.write(base64.b64decode(data))


def want(what, text):
    if not what:
        raise SystemExit('FAILED: ' + text)


# Text that is cut off or stands outside of its box, on the canvas and around it.
OUTSIDE = '''(() => {
  const out = [];
  for (const l of datTrace.labels()) {
    if (l.x < l.box.x || l.x + l.width > l.box.x + l.box.w + .5 || l.box.h < 10) out.push(l.text);
  }
  for (const e of document.querySelectorAll('header *, aside *, footer')) {
    if (e.tagName === 'SUMMARY' || !e.textContent) continue;
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 &&
        getComputedStyle(e).display !== 'inline') out.push(e.tagName + ': ' + e.textContent);
    const r = e.getBoundingClientRect();
    if (r.right > innerWidth + 1) out.push('beyond the page: ' + e.textContent);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) out.push('the page is too wide');
  return out;
})()'''

LIGHT = '''getComputedStyle(document.body).backgroundColor.match(/\\d+/g)
  .slice(0, 3).reduce((a, b) => a + Number(b), 0) > 382'''


def looks(browser, name):
    for mode, dark, (width, height, scale) in (('light', False, (1280, 800, 1)),
                                               ('dark', True, (1280, 800, 1)),
                                               ('200', False, (640, 400, 2))):
        browser.dark(dark)
        browser.size(width, height, scale)
        browser.settle()
        browser.settle()
        browser.picture(f'{name}-{mode}')
        want(browser.value(LIGHT) != dark, f'{mode}: the page has the other background')
        want(browser.value('datTrace.labels().length') > 0, f'{mode}: no text is drawn')
        outside = browser.value(OUTSIDE)
        want(not outside, f'{mode}: text outside of its box: {outside[:5]}')
    browser.dark(False)
    browser.size(1280, 800, 1)
    browser.settle()


def slices(browser, page, expected):
    with open(expected, encoding='utf-8') as file:
        wanted = json.load(file)
    browser.open(page)
    found = browser.value('''datTrace.rows.filter(r => r.kind === 'states').map(r => [r.endpoint,
      r.slices.map(s => [datTrace.data.states[s[2]].name,
        s[3] < 0 ? '' : datTrace.data.table[r.causes[s[3]][1]].name])])''')
    found = {str(number): row for number, row in found}
    want(found == wanted, f'the slices differ:\n page {found}\n wanted {wanted}')
    browser.value('document.getElementById("view").focus()')
    before = browser.value('document.getElementById("status").textContent')
    browser.key('+')
    after = browser.value('document.getElementById("status").textContent')
    want(before != after, 'the key + does not zoom')
    browser.key('f')
    want(browser.value('document.getElementById("status").textContent') == before,
         'the key f does not show all')
    browser.key('ArrowDown')
    browser.key('n')
    want(browser.value('datTrace.chosen() !== null'), 'keys choose nothing')
    print(f'{sum(map(len, found.values()))} slices of {len(found)} endpoints')


def broken(browser, page, *texts):
    browser.open(page)
    browser.value('document.getElementById("view").focus()')
    browser.key('b')
    chosen = browser.value('datTrace.chosen() && [datTrace.rows.indexOf(datTrace.chosen().row),'
                           ' datTrace.chosen().i]')
    want(chosen, 'there is no BROKEN slice')
    row, i = chosen
    # In view and wide enough, nothing chosen; then by the mouse.
    browser.value(f'''(() => {{ const s = datTrace.rows[{row}].slices[{i}], w = s[1] + 10;
        datTrace.show(s[0] - w / 2, s[0] + s[1] + w / 2); return true; }})()''')
    browser.key('Escape')
    want(browser.value('datTrace.chosen() === null'), 'Escape does not let go')
    at = browser.value(f'datTrace.place(datTrace.rows[{row}], {i})')
    browser.click(at['x'], at['y'])
    about = browser.value('document.getElementById("about").innerText')
    for text in ('BROKEN',) + texts:
        want(text in about, f'a click on the BROKEN slice does not show "{text}" but\n{about}')
    print(' '.join(about.split())[:160])


def many(browser, page, number):
    browser.open(page)
    count = browser.value('datTrace.data.items')
    want(count == int(number), f'{count} operations, not {number}')
    for _ in range(12):
        browser.value('document.getElementById("in").click()')
    browser.settle()
    drawn = browser.value('datTrace.labels().length')
    row = browser.value('datTrace.rows.findIndex(r => r.kind === "requests" && r.count)')
    browser.value(f'''(() => {{ const r = datTrace.rows[{row}], i = r.first + (r.count >> 1),
        b = r.b[i], e = r.end(i); datTrace.show(b - (e - b), e + (e - b)); return true; }})()''')
    browser.settle()
    at = browser.value(f'''(() => {{ const r = datTrace.rows[{row}];
        return datTrace.place(r, r.first + (r.count >> 1)); }})()''')
    browser.click(at['x'], at['y'])
    about = browser.value('document.getElementById("about").innerText')
    want('bytes' in about and 'context' in about, 'a click on an operation shows nothing of it')
    print(f'{count} operations, {drawn} labels')


def main():
    check, page, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    browser = Browser()
    try:
        browser.size(1280, 800, 1)
        {'slices': slices, 'broken': broken, 'many': many}[check](browser, page, *rest)
        looks(browser, check)
        want(not browser.faults, f'the console has {browser.faults}')
        others = [url for url in browser.requests if not url.startswith(('file://', 'data:'))]
        want(not others, f'the page asks the network for {others}')
        pages = [url for url in browser.requests if url.startswith('file://')]
        want(len(pages) == 1, f'the page needs other files: {pages}')
    finally:
        browser.close()


main()
