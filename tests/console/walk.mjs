// The checks of run.sh: each has a page of a browser that fails the check if anything goes wrong in it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { chromium } from 'playwright-core';

const { STELA_PROGRAM: stela, WORK: work, PICTURES: pictures, GUIDE: guide, STELA_WEB_ROOT: webRoot, DB: database, EMPTY_DB: empty } = process.env;
const chosen = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const isOnServer = database.startsWith('postgresql:');
const toAct = isOnServer ? ['--operate-as', `shop=${database}`] : ['--allow-actions'];

/** Nothing is waited for without an end. */
async function within(seconds, what, promise) {
  let timer = 0;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${seconds} s`)), seconds * 1000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

const failed = [];

// ---- The server

let server = null;
let program = stela;
let origin = '';

/** Starts it, and gives the link that it prints. */
function serve(port = 0, ...more) {
  const file = `${work}/port`;
  rmSync(file, { force: true });
  const options = ['--db', `shop=${database}`, '--db', `empty=${empty}`, '--listen', `127.0.0.1:${port}`, '--port-file', file, ...more];
  if (webRoot) options.push('--web-root', webRoot);
  server = spawn(program, ['serve', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  return within(20, 'a link of stela serve', new Promise((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr]) {
      stream.on('data', (data) => {
        said += data;
        const link = /http:\/\/\S+#k=\S+/.exec(said);
        if (!link) return;
        origin = new URL(link[0]).origin;
        resolve(link[0]);
      });
    }
    server.once('exit', (code, signal) => {
      const how = `stela serve ended by itself (${signal ?? code}): ${said}`;
      failed.push('the server');
      console.log(how);
      reject(new Error(how));
    });
  }));
}

/** Ends it; one that has ended is no wait. */
async function end(signal) {
  if (server.exitCode !== null || server.signalCode !== null) return;
  server.removeAllListeners('exit');
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill(signal);
  try {
    await within(10, `the end of stela serve by ${signal}`, ended);
  } catch (error) {
    server.kill('SIGKILL');
    throw error;
  }
}

/** What a command prints, whatever its exit code says of it. */
function run(...words) {
  try {
    return execFileSync(stela, [...words, '--db', database], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 30_000 });
  } catch (error) {
    if (error.code === 'ETIMEDOUT') throw error;
    return error.stdout;
  }
}
const status = () => JSON.parse(run('outbox', 'status', '--json'));
const events = (...options) => run('events', 'list', '--json', ...options).trim().split('\n').map((line) => JSON.parse(line));
const append = () => run('events', 'append', '--stream', 'note-live', '--type', 'note.taken', '--leave-behind', '--data', '{"text":"live"}');

// ---- The browser

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin' });
await context.grantPermissions(['clipboard-read', 'clipboard-write']);

/** What must not happen in a page: an error, or a request to anywhere else. */
function watch(page, faults, allowed = () => false) {
  page.on('pageerror', (error) => faults.push(`an error: ${error.stack}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !allowed(message)) faults.push(`the console says: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`a request to ${request.url()}`);
  });
}

async function check(name, act, { allowed, size = [1280, 800], of = context, always = false, seconds = 60 } = {}) {
  if (!always && chosen.length > 0 && !chosen.some((word) => name.includes(word))) return;
  const page = await within(20, 'a page of the browser', of.newPage());
  page.setDefaultTimeout(8000);
  await page.setViewportSize({ width: size[0], height: size[1] });
  const faults = [];
  watch(page, faults, allowed);
  const began = Date.now();
  try {
    await within(seconds, name, act(page));
    assert.deepEqual(faults, []);
    console.log(`${name}: as it should be, ${((Date.now() - began) / 1000).toFixed(1)} s`);
  } catch (error) {
    failed.push(name);
    console.log(`${name}: FAILED\n${error.message}`);
    if (pictures) await page.screenshot({ path: `${pictures}/failed-${name.replace(/\W+/g, '-')}.png` }).catch(() => undefined);
  }
  await within(10, 'the end of a page', page.close()).catch((error) => console.log(`  ${error.message}`));
}

const visit = (page, path) => page.goto(`${origin}/s/shop/${path}`);
const text = (page) => page.evaluate(() => document.querySelector('main').innerText);
const settled = async (page) => {
  await page.waitForSelector('main h1');
  await page.waitForFunction(() => document.querySelector('main .asof, main .quiet, main .place') !== null);
  await page.waitForTimeout(400);
};

/** A picture of the guide. */
const illustrate = async (page, name, height) => {
  if (guide) await page.screenshot({ path: `${guide}/console-${name}.png`, clip: { x: 0, y: 0, width: 1280, height } });
};

async function violations(page, only = undefined) {
  await page.evaluate(axe);
  const found = await page.evaluate((chosen) => globalThis.axe.run(document, { runOnly: chosen ?? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }), only);
  return found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(' | ')}`);
}

// ---- What the store has

const poisoned = Number(/event (\d+)/.exec(run('why'))[1]);
const [parked] = run('outbox', 'list', '--state', 'parked', '--limit', '1', '--json').trim().split('\n').map((line) => JSON.parse(line));
const stopped = status().partitions.find((partition) => partition.stopped !== null).partition;
const [named] = ['<script>'].map((mark) => events('--type', 'note.taken').find((event) => event.stream.includes(mark)));
const hebrew = events('--type', 'note.taken').find((event) => event.stream.includes('שלום'));
const long = events('--category', 'note').find((event) => event.stream.length > 150);
const timer = JSON.parse(run('timers', 'list', '--limit', '1', '--json').trim());
const group = JSON.parse(run('outbox', 'groups', '--json').trim().split('\n')[0]).group;
const encode = encodeURIComponent;

const pages = {
  overview: '',
  partitions: 'outbox',
  messages: 'outbox/messages?state=parked',
  groups: 'outbox/groups',
  'messages of a group': `outbox/messages?group=${group}`,
  workers: 'outbox/workers',
  generations: 'outbox/generations',
  partition: `outbox/${stopped}`,
  'event that stops': `e/${poisoned}`,
  'event parked': `e/${parked.sequence}`,
  'event with markup': `e/${named.sequence}`,
  'event from right to left': `e/${hebrew.sequence}`,
  'event with long names': `e/${long.sequence}`,
  stream: 'stream/order-1001?at=3&with=1',
  'stream with markup': `stream/${encode(named.stream)}`,
  'stream from right to left': `stream/${encode(hebrew.stream)}`,
  'stream with a long name': `stream/${encode(long.stream)}`,
  correlation: 'c/order%201001',
  'correlation with markup': `c/${encode(named.correlation_id)}`,
  'correlation with a long name': `c/${encode(long.correlation_id)}`,
  events: 'events',
  'events live': 'events?live=1',
  followers: 'followers',
  topology: 'topology',
  process: 'followers/payment_deadline',
  projection: 'followers/open_orders',
  timers: 'timers',
  timer: `timers/${[timer.process, timer.key, timer.kind].map(encode).join('/')}`,
  log: 'log',
  jobs: 'log/jobs',
  changes: 'log/changes',
  known: 'log/known',
  settings: 'log/settings',
  'nothing found': 'find?q=nothing-of-this-name',
  'no such page': 'nowhere',
};

// ---- Checks

let link = await serve();
await check('the link opens a session once', async (page) => {
  await page.goto(link);
  await page.waitForSelector('h1:has-text("Overview")');
  assert.equal(page.url(), `${origin}/s/shop/`, 'the key stays nowhere');
  await page.goto(`${origin}/`);
  await page.waitForSelector('h1:has-text("Overview")');
}, { always: true });

const looks = [['light', 1280], ['dark', 1280], ['light', 380], ['dark', 2560]];
for (const [colorScheme, width] of looks) {
  await check(`every page, ${colorScheme}, ${width} wide`, async (page) => {
    await page.emulateMedia({ colorScheme });
    const wrong = [];
    for (const [name, path] of Object.entries(pages)) {
      await visit(page, path);
      await settled(page);
      for (const violation of width > 2000 ? [] : await violations(page, colorScheme === 'dark' ? ['color-contrast'] : undefined)) wrong.push(`${name}: ${violation}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) wrong.push(`${name} is ${over} too wide`);
      if (!(await page.title()).endsWith('Stela')) wrong.push(`${name} is called ${await page.title()}`);
      if (pictures) await page.screenshot({ path: `${pictures}/${name.replaceAll(' ', '-')}-${colorScheme}-${width}.png`, fullPage: width < 2000 });
    }
    assert.deepEqual(wrong, []);
  }, { size: [width, 800], seconds: 240 });
}

await check('the overview says what is wrong and what to do', async (page) => {
  await visit(page, '');
  await page.waitForSelector('.worst');
  const said = await text(page);
  for (const part of [`artition ${stopped} is stopped`, `event ${poisoned}`, `stela outbox partitions resume ${stopped}`, '1 known']) {
    assert.ok(said.includes(part), `${part} in ${said}`);
  }
  await page.click('.remedy button >> nth=0');
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^stela outbox /);
});

await check('the first page has its data soon', async (page) => {
  await visit(page, 'log/settings');
  await settled(page);
  const began = Date.now();
  await visit(page, '');
  await page.waitForSelector('.worst');
  console.log(`  after ${Date.now() - began} ms`);
  // On a server each part of the answer has a connection of its own.
  assert.ok(Date.now() - began < (isOnServer ? 4000 : 2000));
});

await check('values change while one looks, and nothing jumps', async (page) => {
  await page.addInitScript(() => {
    globalThis.shifts = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) shifts.push([entry.value, ...entry.sources.map((source) => source.node?.outerHTML?.slice(0, 80))]);
    }).observe({ type: 'layout-shift', buffered: true });
  });
  await visit(page, '');
  await page.waitForSelector('.figure');
  await page.waitForTimeout(3500);
  const before = status();
  append();
  const head = Number(JSON.parse(run('events', 'head', '--json')).head);
  await page.waitForFunction((number) => document.querySelector('.figures').innerText.replace(/\D/g, ' ').includes(` ${number} `), head);
  await page.waitForTimeout(2500);
  assert.ok(before.published > 0);
  assert.deepEqual((await page.evaluate(() => shifts)).filter(([value]) => value > 0.002), []);
});

await check('a page that nobody sees asks nothing', async (page) => {
  await visit(page, '');
  await page.waitForSelector('.worst');
  const hide = (isHidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
  await hide(true);
  await page.waitForTimeout(1500);
  let asked = 0;
  page.on('request', () => ++asked);
  await page.waitForTimeout(2500);
  assert.equal(asked, 0);
  await hide(false);
  await page.waitForRequest('**/overview');
});

await check('a list says how many came, and keeps its rows', async (page) => {
  await visit(page, 'events');
  await page.waitForSelector('.rows tbody tr');
  const first = await page.locator('.rows tbody tr').first().innerText();
  append();
  await page.waitForSelector('.came button');
  assert.equal(await page.locator('.rows tbody tr').first().innerText(), first);
  await page.click('.came button');
  await page.waitForFunction((old) => document.querySelector('.rows tbody tr')?.innerText !== old, first);
});

await check('the tail shows what is committed', async (page) => {
  await visit(page, 'events?live=1&category=note');
  await page.waitForSelector('.rows tbody tr');
  const rows = await page.locator('.rows tbody tr').count();
  append();
  await page.waitForFunction((count) => document.querySelectorAll('.rows tbody tr').length === count + 1, rows);
});

/** What has a row as the page's interface of this name says. */
const rowsOf = (...words) => run(...words, '--json').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
const shapes = {
  Check: () => rowsOf('check'),
  Finding: () => rowsOf('check')[0].findings,
  Counts: () => [status(), ...status().partitions],
  Outbox: () => [status()],
  Partition: () => status().partitions,
  Worker: () => status().workers,
  Generation: () => status().generations,
  Message: () => rowsOf('outbox', 'list'),
  Group: () => rowsOf('outbox', 'groups'),
  Projector: () => rowsOf('projections', 'status'),
  Process: () => rowsOf('processes', 'list'),
  Minute: () => rowsOf('outbox', 'history'),
  Change: () => rowsOf('changes'),
  Known: () => rowsOf('findings', 'known'),
  Setting: () => rowsOf('config', 'show'),
  StoredEvent: () => events(),
  Twig: () => rowsOf('events', 'tree', String(parked.sequence)),
  Timer: () => rowsOf('timers', 'list'),
  Action: () => rowsOf('log'),
  FollowerMinute: () => rowsOf('projections', 'history'),
  Topology: () => rowsOf('topology'),
  EventType: () => rowsOf('topology')[0].event_types,
  Following: () => rowsOf('topology')[0].followers,
};

const printedFile = new URL('../../tool/console/web/src/printed.ts', import.meta.url);
const kindOf = (value) => (value === null ? 'null' : Array.isArray(value) ? 'unknown[]' : typeof value);

/** "Name" → "field" → the kinds of values that the file has, or that these rows have. */
const kindsInFile = () => new Map([...readFileSync(printedFile, 'utf8').matchAll(/interface (\w+) \{([^}]*)\}/g)].map(([, name, body]) => [
  name, new Map([...body.matchAll(/^ {2}(\w+): (.*);$/gm)].map(([, field, kinds]) => [field, new Set(kinds.split(' | '))])),
]));
function kindsIn(rows) {
  const fields = new Map();
  for (const row of rows) {
    for (const [field, value] of Object.entries(row)) fields.set(field, (fields.get(field) ?? new Set()).add(kindOf(value)));
  }
  return fields;
}

await check('the types of the page are those of what the commands print', async () => {
  const known = kindsInFile();
  const wrong = [];
  let file = '// What the commands print, as they did: made by tests/console/run.sh --types. fits.ts compares the types of the page with it.\n';
  for (const [name, rows] of Object.entries(shapes)) {
    const printed = kindsIn(rows());
    assert.ok(printed.size > 0, `no ${name} is printed`);
    const before = known.get(name) ?? new Map();
    for (const field of before.keys()) if (!printed.has(field)) wrong.push(`${name}'s ${field} is printed no more`);
    for (const [field, kinds] of printed) {
      const noted = before.get(field) ?? new Set();
      // What was never there when it was noted may be now.
      const isOpen = noted.size === 1 && noted.has('null');
      for (const kind of kinds) if (!noted.has(kind) && !isOpen) wrong.push(`${name}'s ${field} is a new ${kind}`);
    }
    // What can be null isn't always.
    const line = ([field, kinds]) => `  ${field}: ${[...new Set([...kinds, ...(before.get(field) ?? [])])].sort().join(' | ')};\n`;
    file += `export interface ${name} {\n${[...printed].map(line).join('')}}\n`;
  }
  if (process.env.TYPES) return writeFileSync(printedFile, file);
  assert.deepEqual(wrong, [], 'tests/console/run.sh --types notes it, and npm run build says what the page must change');
});

await check('pages follow each other', async (page) => {
  await visit(page, 'events');
  await page.waitForSelector('.rows tbody tr');
  const last = await page.locator('.rows tbody th').last().innerText();
  await page.click('button:text("Next page")');
  await page.waitForFunction((number) => document.querySelector('.rows tbody th')?.innerText === String(number - 1), Number(last));
  await page.goBack();
  await page.waitForFunction((number) => [...document.querySelectorAll('.rows tbody th')].at(-1)?.innerText === number, last);
  await visit(page, 'events?type=order.cancelled');
  await page.waitForSelector('.rows tbody tr');
  assert.equal(await page.locator('.rows tbody tr').count(), 1);
  assert.ok((await text(page)).includes('1 shown, that is all'));
});

await check('versions of a stream beside each other', async (page) => {
  await visit(page, 'stream/order-1001');
  await page.click('.rows tbody th a:text("1")');
  await page.waitForFunction(() => document.querySelector('.beside h2')?.innerText.startsWith('Version 1'));
  assert.equal(await page.locator('.two > :first-child tbody tr').count(), 3);
  await page.fill('input[name=with]', '3');
  await page.click('text=Show');
  await page.waitForSelector('.pair');
  assert.match(await page.innerText('.beside'), /5 values differ, 3 are the same[^]*carrier\s+absent\s+"dhl"/);
  await visit(page, 'stream/order-1001?at=77');
  await page.waitForSelector('text=There is no version 77 here');
});

await check('a topology: what the store knows, and what only the application knows', async (page) => {
  await visit(page, 'followers');
  await page.waitForSelector('.rows .spark');
  assert.match(await page.locator('.rows .spark').first().getAttribute('aria-label'), /^lag: at most \d+ s, last .*, noted in \d\d of 60 minutes$/);
  await page.click('.tabs >> text=Topology');
  await page.waitForSelector('.topology svg');
  assert.match(await text(page), /stela doesn't know the application's types/);
  await page.waitForFunction(() => [...document.querySelectorAll('td[data-head="Handled by"]')].every((cell) => cell.innerText === '?'));
  const said = await text(page);
  for (const part of [/order\.placed\s+order-…\s+by the outbox\s+yes/, /payment_deadline\s+process\s+yes\s+\?/]) assert.match(said, part);
});

await check('a correlation: lanes with arrows, and the same as an outline', async (page) => {
  await visit(page, '');
  await page.waitForSelector('.worst');
  await page.fill('#find', 'order 1001');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.lanes');
  const all = events('--correlation', 'order 1001');
  const caused = all.filter(({ causation_id: cause }) => all.some(({ id }) => id === cause));
  assert.ok(caused.length > 0);
  assert.equal(await page.locator('.lanes .dot').count(), all.length);
  assert.equal(await page.locator('.lanes .arrow').count(), caused.length);
  assert.equal(await page.locator('.lanes li').count(), new Set(all.map(({ stream }) => stream)).size);
  await page.waitForFunction((count) => document.querySelectorAll('section .rows tbody tr').length === count, all.length);
  assert.match(await page.innerText('section .rows'), new RegExp(`${all[0].sequence}\\s+order.placed\\s+order-1001[^]*published`));
  // Each effect is below its cause, and further in.
  const depths = await page.locator('section .rows .depth').evaluateAll((cells) => cells.map((cell) => Number(/d(\d+)/.exec(cell.className)[1])));
  assert.equal(depths.filter((depth) => depth > 0).length, caused.length);
  await illustrate(page, 'correlation', 600);
  await page.locator('.lanes svg a').nth(1).click();
  await page.waitForSelector(`h1:has-text("Event ${all[1].sequence}")`);
  await page.click(`.facts a:has-text("order 1001")`);
  await page.waitForSelector('.lanes');
});

await check('a stream says where its messages are, and a group which streams it holds up', async (page) => {
  await visit(page, `stream/${parked.stream}`);
  await page.waitForFunction(() => [...document.querySelectorAll('.rows tbody td[data-head=Message]')].some((cell) => cell.innerText.includes('parked')));
  await visit(page, 'stream/order-1001');
  const said = () => page.locator('.rows tbody td[data-head=Message]').allInnerTexts();
  await page.waitForFunction(() => document.querySelector('main').innerText.includes('published'));
  assert.deepEqual((await said()).map((text) => text.replace(/ #.*/, '')), ['published', 'local', 'published']);
  await visit(page, 'outbox/groups');
  await page.click('text=the first of each stream');
  await page.waitForSelector('.rows tbody tr');
  assert.deepEqual(await page.locator('.rows tbody td[data-head=Stream]').allInnerTexts(), ['mail-91', 'mail-92', 'mail-93']);
  await page.waitForSelector(`.acts button:has-text("Retry group ${group}")`);
  await visit(page, `outbox/${stopped}`);
  await page.waitForSelector('.plots');
  await page.waitForSelector(`.command code:text-is("stela outbox discard ${poisoned}")`);
});

await check('text of the database is text', async (page) => {
  for (const path of [`e/${named.sequence}`, `stream/${encode(named.stream)}`, 'events?category=note', 'outbox/messages?state=published&newest-first=1']) {
    await visit(page, path);
    await settled(page);
    await page.waitForFunction(() => document.querySelector('main')?.innerText.includes('<script>'));
    assert.equal(await page.locator('main script, main img').count(), 0);
    assert.notEqual(await page.title(), 'broken');
  }
  await visit(page, `e/${hebrew.sequence}`);
  await page.waitForFunction(() => document.querySelector('pre')?.innerText.includes('\\u202etxt.exe'));
});

await check('by the keyboard alone: from the search field to why', async (page) => {
  await visit(page, '');
  await page.waitForSelector('.worst');
  await page.keyboard.press('/');
  await page.keyboard.type(String(poisoned));
  await page.keyboard.press('Enter');
  await page.waitForSelector(`h1:has-text("Event ${poisoned}")`);
  await page.waitForFunction(() => document.activeElement.tagName === 'H1');
  await page.waitForSelector('.boxed .chain');
  const seen = [];
  for (let i = 0; i < 12 && !seen.at(-1)?.startsWith('Copy'); ++i) {
    await page.keyboard.press('Tab');
    seen.push(await page.evaluate(() => document.activeElement.innerText));
  }
  assert.ok(seen.includes(`Partition ${stopped}`) || seen.includes(`partition ${stopped}`), `the chain can be followed: ${seen}`);
  assert.equal(seen.at(-1), 'Copy');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement.innerText === 'Copied');
  await page.keyboard.press('g');
  await page.keyboard.press('b');
  await page.waitForSelector('h1:has-text("Outbox")');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open]');
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog:not([open])', { state: 'hidden' });
});

await check('by the keyboard alone: through the curves', async (page) => {
  await visit(page, '');
  await page.waitForSelector('.plots');
  await page.focus('.plots');
  const value = () => page.getAttribute('.plots', 'aria-valuetext');
  await page.keyboard.press('Home');
  const first = await value();
  const said = new Set();
  let marks = '';
  for (let i = 0; i < 61; ++i) {
    said.add((await value()).includes('not noted'));
    marks += (await value()).replace(/^.*lag [^,]*/, '');
    await page.keyboard.press('ArrowRight');
  }
  assert.deepEqual([...said].sort(), [false, true], 'a gap is said to be one');
  assert.notEqual(await value(), first);
  assert.ok(marks.includes(`${stopped} stopped`), `what happened is marked: ${marks}`);
  assert.equal(await page.locator('.chart .line').count() > 3, true, 'a gap divides a curve');
});

await check('single keys can be switched off', async (page) => {
  await visit(page, '');
  await page.click('.help');
  await page.click('text=Single keys are on');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  assert.equal(await page.locator('dialog[open]').count(), 0);
}, { of: await browser.newContext({ storageState: await context.storageState() }) });

await check('a theme is there before anything is painted; times are local or UTC', async (page) => {
  await page.addInitScript(() => {
    localStorage.setItem('stela.theme', '"dark"');
    localStorage.setItem('stela.utc', 'true');
    new MutationObserver(() => {
      if (document.body && globalThis.first === undefined) globalThis.first = document.documentElement.dataset.theme;
    }).observe(document, { childList: true, subtree: true });
  });
  await visit(page, `e/${poisoned}`);
  await page.waitForSelector('.facts');
  assert.equal(await page.evaluate(() => globalThis.first), 'dark');
  assert.match(await text(page), /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC/);
}, { of: await browser.newContext({ storageState: await context.storageState() }) });

/** Answers the overview with parts of it in another way. */
const instead = (page, change) => page.route('**/overview', async (answer) => {
  const response = await answer.fetch({ headers: { ...answer.request().headers(), 'if-none-match': '' } });
  const json = await response.json();
  change(json);
  await answer.fulfill({ response, json });
});

await check('silence is never a zero', async (page) => {
  await instead(page, ({ data }) => {
    data.outbox = { error: 'the database is locked' };
    data.projections = { error: 'the database is locked' };
    data.check.asked.push({ what: 'broker nats://nats-2', answered: false, since_at: null, error: 'timed out' });
  });
  await visit(page, '');
  await page.waitForSelector('.figure');
  const figures = await page.locator('.figure').allInnerTexts();
  assert.ok(figures.slice(1, 4).every((figure) => figure.includes('?')), figures.join(' | '));
  assert.match(figures[4], /1 of 2 answered[^]*nats-2[^]*timed out/);
  assert.equal((await text(page)).match(/not answered: the database is locked/g).length, 2);
  assert.deepEqual(await violations(page), []);
  if (pictures) await page.screenshot({ path: `${pictures}/partial.png`, fullPage: true });
});

await check('all of it can refuse', async (page) => {
  // This isn't asked again by itself.
  await page.route('**/outbox/list?*', (answer) => answer.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"detail":"the database <b>is</b> locked"}' }));
  await visit(page, 'outbox/messages');
  await page.waitForSelector('.refused');
  assert.match(await text(page), /not answered: the database <b>is<\/b> locked/);
  assert.doesNotMatch(await text(page), /shown|that is all/, 'silence is no empty list');
  assert.deepEqual(await violations(page), []);
  await page.unroute('**/outbox/list?*');
  await page.click('text=Ask again');
  await page.waitForSelector('.rows');
}, { allowed: (message) => message.text().includes('500') });

await check('an empty store', async (page) => {
  for (const path of ['', 'outbox', 'events', 'events?live=1', 'followers', 'timers', 'log', 'log/changes']) {
    await page.goto(`${origin}/s/empty/${path}`);
    await settled(page);
    assert.deepEqual(await violations(page), [], path);
  }
  await page.goto(`${origin}/s/empty/`);
  await page.waitForSelector('.figure');
  assert.match(await text(page), /Nothing is wrong/);
  if (pictures) await page.screenshot({ path: `${pictures}/empty.png`, fullPage: true });
}, { allowed: (message) => message.text().includes('404') });

await check('nothing spins within 200 ms', async (page) => {
  // However busy the machine is: the answers are known, and come after this time.
  const kept = new Map();
  let delay = 0;
  await page.route('**/api/v1/s/shop/**', async (answer) => {
    const url = answer.request().url();
    if (!kept.has(url)) {
      const response = await answer.fetch();
      kept.set(url, { status: response.status(), contentType: 'application/json', body: await response.text() });
    }
    await new Promise((resolve) => setTimeout(resolve, delay));
    await answer.fulfill(kept.get(url)).catch(() => undefined);
  });
  await visit(page, 'outbox/messages');
  await page.waitForSelector('.rows');
  delay = 60;
  await page.addInitScript(() => {
    globalThis.reading = 0;
    new MutationObserver(() => (globalThis.reading += document.body?.innerText.includes('Reading …') ? 1 : 0)).observe(document, { childList: true, subtree: true, characterData: true });
  });
  await visit(page, 'outbox/messages');
  await page.waitForSelector('.rows');
  assert.equal(await page.evaluate(() => globalThis.reading), 0);
  delay = 900;
  await page.selectOption('select[name=state]', 'published');
  await page.waitForSelector('text=Reading …');
  await page.waitForFunction(() => document.querySelector('.rows td')?.innerText === 'published');
  // The first answer, too, may take its time.
  await page.reload();
  await page.waitForSelector('text=Reading …');
});

await check('nobody without a session sees anything', async (page) => {
  await page.goto(`${origin}/s/shop/e/1`);
  await page.waitForSelector('h1:has-text("This page has no session")');
  assert.deepEqual(await violations(page), []);
  await page.goto(link);
  await page.waitForSelector('h1:has-text("This page has no session")');
  if (pictures) await page.screenshot({ path: `${pictures}/no-session.png` });
}, { of: await browser.newContext(), allowed: (message) => message.text().includes('401') });

await check('a server that dies and comes back', async (page) => {
  await visit(page, '');
  await page.waitForSelector('.worst');
  await end('SIGKILL');
  await page.waitForSelector('.banner');
  await page.waitForSelector('.asof .mark');
  assert.ok((await text(page)).includes('is stopped'), 'what was known is still shown');
  assert.deepEqual(await violations(page), []);
  if (pictures) await page.screenshot({ path: `${pictures}/stale.png`, fullPage: true });
  link = await serve(Number(new URL(origin).port));
  await page.waitForSelector('h1:has-text("This page has no session")');
  await page.evaluate((hash) => (location.hash = hash), new URL(link).hash);
  await page.waitForSelector('.worst');
  assert.ok(!page.url().includes('#'));
}, { allowed: (message) => /401|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_SOCKET/.test(message.text()) });

await check('below a path of a proxy', async (page) => {
  await end('SIGTERM');
  await page.goto(await serve(0, '--base-path', '/stela/'));
  await page.waitForSelector('.worst');
  assert.equal(page.url(), `${origin}/stela/s/shop/`);
  await page.click('nav >> text=Events');
  await page.waitForSelector('.rows tbody tr');
  await page.reload();
  await page.click('.rows tbody th a >> nth=0');
  await page.waitForSelector('.boxed');
  assert.match(page.url(), /\/stela\/s\/shop\/e\/\d+$/);
}, { of: await browser.newContext() });

// ---- Actions

await check('acts: a console that only reads has its buttons switched off, and says why', async (page) => {
  await page.goto(await anew());
  await page.waitForSelector('h1:has-text("Overview")');
  for (const path of ['', 'outbox/groups', 'outbox', `e/${poisoned}`, `e/${parked.sequence}`, 'timers', `outbox/${stopped}`]) {
    await visit(page, path);
    await page.waitForSelector('.acts button');
    assert.equal(await page.locator('.acts button:not([aria-disabled=true])').count(), 0, path);
    await page.waitForSelector('text=This console only reads: stela serve --allow-actions');
    await page.locator('.acts button').first().click({ force: true });
    assert.equal(await page.locator('dialog[open]').count(), 0, path);
  }
}, { of: await browser.newContext() });

/** Another server, which may act or has other types. */
async function anew(...options) {
  await end('SIGTERM');
  return serve(0, ...options);
}

const acting = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin' });
let acts = null;
async function actOn(page, path) {
  if (acts === null) {
    acts = await anew(...toAct);
    await page.goto(acts);
    await page.waitForSelector('.worst');
  }
  await visit(page, path);
}
const parkedNow = () => run('outbox', 'list', '--state', 'parked', '--json').trim().split('\n').filter(Boolean).length;
const logged = () => run('log', '--json').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
const begin = (page, name) => page.click(`.acts button:has-text("${name}") >> nth=0`);
const asks = (page) => page.waitForSelector('.job .deed');
const said = (page, text) => page.waitForSelector(`.job :text("${text}")`);
const shoot = async (page, name) => {
  for (const [colorScheme, width] of pictures ? looks : []) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png` });
  }
  await page.setViewportSize({ width: 1280, height: 800 });
};
const focused = (page) => page.evaluate(() => document.activeElement.innerText);
async function tabTo(page, start) {
  for (let i = 0; i < 40; ++i) {
    if ((await focused(page)).startsWith(start)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`nothing that can be reached is called ${start}`);
}

/** The session of somebody with these grants. */
const granted = (page, grants, more = {}) => page.route('**/api/v1/session', async (answer) => {
  const response = await answer.fetch();
  if (!response.ok()) return answer.fulfill({ response });
  const facts = { ...(await response.json()), who: 'ops', acts: true, grants: { view: true, payloads: 'full', operate: false, admin: false, ...grants }, ...more };
  await answer.fulfill({ response, json: facts });
});

await check('grants: what is missing switches a button off and is named', async (page) => {
  await granted(page, { operate: true });
  await page.goto(await anew(...toAct));
  await page.waitForSelector('h1:has-text("Overview")');
  assert.match(await page.innerText('header'), /ops/);
  await visit(page, `outbox/${stopped}`);
  await page.waitForSelector('.acts button:has-text("Resume")');
  const isOff = (name) => page.locator(`.acts button:has-text("${name}")`).getAttribute('aria-disabled');
  assert.deepEqual([await isOff('Discard'), await isOff('Resume')], [null, 'true']);
  assert.match(await text(page), /Needs the grant 'admin'/);
  assert.deepEqual(await violations(page), []);
  await page.click('.acts button:has-text("Resume")', { force: true });
  assert.equal(await page.locator('dialog[open]').count(), 0);
}, { of: await browser.newContext() });

await check('grants: payloads are masked or not shown, and the page says so', async (page) => {
  await page.goto(await anew());
  await page.waitForSelector('h1:has-text("Overview")');
  for (const [payloads, words] of [['masked', /Masked: keys, types and lengths/], ['none', /Not shown: needs the grant 'payloads'/]]) {
    await granted(page, { payloads });
    for (const path of [`e/${poisoned}`, 'stream/order-1001?at=3&with=1', pages.timer]) {
      await visit(page, path);
      await page.waitForSelector('.facts, .beside');
      await page.waitForFunction((source) => new RegExp(source).test(document.querySelector('main').innerText), words.source);
      assert.equal(await page.locator('main pre').count() > 0, payloads === 'masked', path);
      assert.deepEqual(await violations(page), []);
    }
    await page.unroute('**/api/v1/session');
  }
}, { of: await browser.newContext() });

await check('grants: a person opens a session with a token, and an export says that it is one', async (page) => {
  await page.goto(await anew());
  await page.waitForSelector('h1:has-text("Overview")');
  let sent = null;
  await page.route('**/api/v1/session', async (answer) => {
    if (answer.request().method() === 'POST') {
      sent = answer.request().postDataJSON();
      return answer.fulfill({ json: { token: 't' } });
    }
    const own = sent === null;
    if (own) return answer.fulfill({ status: 401, contentType: 'application/problem+json', body: '{"title":"No session","ways":["token"]}' });
    await answer.fulfill({ json: { stores: ['shop'], program: 'stela', version: '1', environment: null, color: null, can_act: false, who: 'ops', export: { file: 'shop.jsonl', last_event_at: '2026-11-27T02:13:54Z' } } });
  });
  await page.route('**/api/v1/s/**', (answer) => answer.fulfill({ json: { as_of: { sequence: 1, at: '2026-11-27T02:13:54Z' }, data: [], more: null } }));
  await page.goto(`${origin}/s/shop/events`);
  await page.fill('input[name=token]', ' secret ');
  assert.ok(!(await text(page)).includes('prints a new link'));
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.offline');
  assert.deepEqual(sent, { token: 'secret' });
  assert.match(await page.innerText('.offline'), /shop\.jsonl holds; its last event is of 2026-11-27/);
}, { of: await browser.newContext(), allowed: (message) => message.text().includes('401') });

await check('grants: a job says how far it is, and can be cancelled while it runs', async (page) => {
  await granted(page, { operate: true });
  await page.goto(await anew(...toAct));
  await page.waitForSelector('h1:has-text("Overview")');
  const job = { job: 1, command: 'verify', state: 'asks', question: "Run 'verify'?", error: '', printed: [], notes: [] };
  const asked = [];
  await page.route('**/api/v1/s/shop/jobs**', (answer) => {
    const url = answer.request().url();
    if (answer.request().method() === 'POST') {
      asked.push(url.replace(/.*\/jobs/, ''));
      if (url.endsWith('/confirm')) Object.assign(job, { state: 'runs', progress: { stage: 'events', done: 4000, total: 50000 } });
      if (url.endsWith('/cancel')) Object.assign(job, { state: 'cancelled', error: 'it ended while it ran: what was done until then stays' });
    }
    answer.fulfill({ json: /\/jobs$/.test(url) && answer.request().method() === 'GET' ? { data: [job] } : job });
  });
  await page.route('**/api/v1/s/shop/jobs/**', (answer) => answer.fallback());
  await visit(page, 'log/jobs');
  await begin(page, 'Verify');
  await asks(page);
  await page.click('.job .deed');
  await said(page, 'of 50');
  assert.match(await page.innerText('.job'), /events: 4000 of 50.000/);
  assert.deepEqual(await violations(page), []);
  await page.click('text=Cancel the job');
  await said(page, 'what was done until then stays');
  assert.deepEqual(asked, ['', '/1/confirm', '/1/cancel']);
}, { of: await browser.newContext() });

await check('acts: who cancels has done nothing', async (page) => {
  await actOn(page, 'outbox');
  await page.click('.tabs >> text=Groups');
  const before = [parkedNow(), logged().length];
  await begin(page, 'Discard');
  await asks(page);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H2', 'a key that is held down confirms nothing');
  assert.match(await page.innerText('.job'), /Discard 3 messages\?[^]*stela outbox discard --group=\w+/);
  assert.deepEqual(await violations(page), []);
  await shoot(page, 'ask-to-discard');
  await page.fill('.job input', 'sho');
  await page.keyboard.press('Enter');
  await page.click('.job .deed', { force: true });
  assert.equal(await page.locator('.job .deed[aria-disabled=true]').count(), 1, 'the name is not that of the store');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog[open]', { state: 'detached' });
  assert.match(await focused(page), /^Discard/, 'the focus is where it was');
  await begin(page, 'Retry');
  await asks(page);
  await page.goBack();
  await page.waitForSelector('dialog[open]', { state: 'detached' });
  await visit(page, 'log/jobs');
  await page.waitForFunction(() => [...document.querySelectorAll('.rows tbody td[data-head=State]')].map((cell) => cell.innerText).join() === 'cancelled,cancelled');
  assert.deepEqual([parkedNow(), logged().length], before);
}, { of: acting });

await check('acts: by the keyboard alone: from a group to what became of it', async (page) => {
  await actOn(page, '');
  await page.waitForSelector('.worst');
  await page.keyboard.press('g');
  await page.keyboard.press('b');
  await page.waitForSelector('h1:has-text("Outbox")');
  await tabTo(page, 'Groups');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.groups');
  await tabTo(page, 'Retry');
  await page.keyboard.press('Enter');
  await asks(page);
  assert.match(await page.innerText('.job'), /Retry 4 messages of 3 streams\?/);
  assert.deepEqual(await violations(page), []);
  await shoot(page, 'ask-to-retry');
  for (let i = 0; i < 5; ++i) {
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('dialog') !== null), 'the focus stays in it');
  }
  await tabTo(page, 'Retry 4');
  // What the question was about isn't any more what there is.
  run('outbox', 'retry', String(parked.sequence));
  await page.keyboard.press('Enter');
  await said(page, 'Done, but not all of it');
  assert.match(await page.innerText('.job'), new RegExp(`Messages\\s+2\\s+Streams\\s+2[^]*Left alone\\s+${parked.stream} at ${parked.sequence}: \\w+`));
  assert.deepEqual(await violations(page), []);
  await shoot(page, 'retried');
  await illustrate(page, 'retried', 600);
  assert.equal(parkedNow(), 0);
  assert.match(logged()[0].who, /console/);
  await tabTo(page, 'Close');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]', { state: 'detached' });
  await page.waitForSelector('text=No message is parked');
  await page.waitForFunction(() => document.activeElement.tagName === 'H1');
}, { of: acting });

await check('acts: a question that somebody else confirmed', async (page) => {
  await actOn(page, 'timers');
  await begin(page, 'Hold');
  await page.fill('.job input', "it's moving");
  await page.keyboard.press('Enter');
  await asks(page);
  assert.match(await page.innerText('.job'), /stela timers hold --why='it'\\''s moving'/);
  const other = await acting.newPage();
  await visit(other, 'log/jobs');
  await other.click('.rows button:has-text("Show") >> nth=0');
  await asks(other);
  assert.deepEqual(await violations(other), []);
  if (pictures) await other.screenshot({ path: `${pictures}/job-of-another.png` });
  await other.click('.job .deed');
  await said(other, 'Done.');
  await other.close();
  await said(page, 'confirmed it.');
  await said(page, 'No timer fires until');
  assert.equal(JSON.parse(run('timers', 'resume', '--dry-run', '--json')).holds.length, 1);
  await page.keyboard.press('Escape');
  await begin(page, 'Resume');
  await asks(page);
  await page.click('.job .deed');
  await said(page, 'Done.');
  assert.equal(JSON.parse(run('timers', 'resume', '--dry-run', '--json')).holds.length, 0);
}, { of: acting });

await check('acts: what a command says of a mistake', async (page) => {
  await actOn(page, pages.timer);
  await begin(page, 'Move');
  await page.fill('.job input', 'soon');
  await page.keyboard.press('Enter');
  await asks(page);
  await page.click('.job .deed');
  await said(page, 'Not done:');
  assert.match(await page.innerText('.job'), /TIME is a time such as [^]* not 'soon'/);
  if (pictures) await page.screenshot({ path: `${pictures}/not-done.png` });
}, { of: acting });

await check('acts: a finding is acknowledged, and counts again', async (page) => {
  await actOn(page, '');
  await page.click('.others .acts button >> nth=0');
  await page.fill('.job input >> nth=0', 'they come on Monday');
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('Enter');
  await asks(page);
  await page.click('.job .deed');
  await said(page, 'Done.');
  const known = () => run('findings', 'known', '--json').trim().split('\n').filter((line) => line.includes('they come on Monday'));
  assert.equal(known().length, 1);
  await visit(page, 'log/known');
  await page.click('tr:has-text("they come on Monday") button');
  await asks(page);
  await page.click('.job .deed');
  await said(page, 'Done.');
  assert.equal(known().length, 0);
}, { of: acting });

await check('acts: what stopped a partition is discarded, and it goes on', async (page) => {
  await actOn(page, `e/${poisoned}`);
  await begin(page, 'Discard');
  await asks(page);
  await page.fill('.job input', 'shop');
  await page.keyboard.press('Enter');
  await said(page, 'Done.');
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => document.querySelector('.boxed').innerText.includes('discarded'));
  await visit(page, `outbox/${stopped}`);
  await begin(page, 'Resume');
  await asks(page);
  await page.click('.job .deed');
  await said(page, `Partition ${stopped} resumes.`);
}, { of: acting });

await check('acts: a server that dies meanwhile, and one of an environment', async (page) => {
  await actOn(page, 'timers');
  await begin(page, 'Hold');
  await page.fill('.job input', 'a while');
  await page.keyboard.press('Enter');
  await asks(page);
  await end('SIGKILL');
  await said(page, 'not answered:');
  await page.goto(await serve(Number(new URL(origin).port), ...toAct, '--environment', 'production'));
  await page.waitForSelector('.environment');
  await visit(page, 'timers');
  await begin(page, 'Hold');
  await page.fill('.job input', 'a while');
  await page.keyboard.press('Enter');
  await asks(page);
  assert.equal(await page.locator('.job .deed[aria-disabled=true]').count(), 1, 'in an environment the name is typed');
  if (pictures) await page.screenshot({ path: `${pictures}/ask-in-production.png` });
  await page.fill('.job input', 'shop');
  await page.keyboard.press('Enter');
  await said(page, 'No timer fires until');
}, { of: acting, allowed: (message) => /401|ERR_/.test(message.text()) });

await check('by the keyboard alone: from a stream to its state at 5', async (page) => {
  program = `${dirname(stela)}/orders`;
  await page.goto(await anew());
  await page.waitForSelector('h1:has-text("Overview")');
  await page.keyboard.press('/');
  await page.keyboard.type('stock-lamp');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.beside .rows');
  for (let i = 0; i < 10 && (await page.evaluate(() => document.activeElement.name)) !== 'at'; ++i) await page.keyboard.press('Tab');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('5');
  await page.keyboard.press('Enter');
  await page.waitForSelector('h2:has-text("State after 5")');
  await page.waitForFunction(() => /State after 5\s+\d+ values? differs?/.test(document.querySelector('.beside').innerText));
  assert.match(page.url(), /stream\/stock-lamp\?at=5/);
}, { of: await browser.newContext() });

await check('a topology of an application that knows its types', async (page) => {
  program = `${dirname(stela)}/orders`;
  await page.goto(await anew());
  await page.waitForSelector('h1:has-text("Overview")');
  await visit(page, 'topology');
  await page.waitForSelector('.topology svg');
  const said = await text(page);
  for (const part of [
    /order\.placed\s+order-…\s+by the outbox\s+yes\s+open_orders, payment_deadline, sales_per_day/, /note\.taken[^\n]*\s+nobody/,
    /payment_deadline\s+process\s+yes\s+order\.placed, order\.paid, order\.cancelled\s+remind_to_pay, not_paid/,
  ]) assert.match(said, part);
  await page.hover('.topology a:has-text("payment_deadline")');
  assert.equal(await page.locator('.topology path.lit').count(), 5);
  assert.deepEqual(await violations(page), []);
  if (pictures) await page.screenshot({ path: `${pictures}/topology-of-types.png`, fullPage: true });
  await illustrate(page, 'topology', 560);
}, { of: await browser.newContext() });

await check('what an event made of the state', async (page) => {
  program = `${dirname(stela)}/orders`;
  await page.goto(await anew());
  await page.waitForSelector('h1:has-text("Overview")');
  await visit(page, 'stream/order-1001?at=2');
  await page.waitForSelector('.beside .rows');
  assert.match(await page.innerText('.beside'), /State after 2\s+1 value differs, 5 are the same[^]*stage\s+1\s+2/);
  await page.click('text=First');
  await page.waitForFunction(() => /State after 1\s+6 values differ/.test(document.querySelector('.beside').innerText));
  assert.deepEqual(await violations(page), []);
  if (pictures) await page.screenshot({ path: `${pictures}/state.png` });
  await illustrate(page, 'state', 720);
  await visit(page, 'stream/mail-91');
  await page.waitForSelector("text=doesn't know the type behind 'mail'");
}, { of: await browser.newContext(), allowed: (message) => message.text().includes('400') });

await within(20, 'the end of the browser', browser.close()).catch((error) => console.log(error.message));
await end('SIGTERM').catch((error) => failed.push(error.message));
if (failed.length > 0) console.log(`Failed: ${failed.join(', ')}`);
process.exit(failed.length > 0 ? 1 : 0);
