// SPDX-License-Identifier: Apache-2.0
// Tests reports of the built program in a browser.
//
//   node test/report_test.mjs WEIR FOLDER       FOLDER: for the files of the test
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

import * as playwright from 'playwright-core';

import {launch, open} from './browser.mjs';

const [, , weir, folder] = process.argv;
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await launch(playwright);
let failed = 0;

async function test(title, body) {
  try {
    await body();
    console.log(`ok: ${title}`);
  } catch (error) {
    failed++;
    console.log(`FAILED: ${title}\n  ${error.message.split('\n').slice(0, 12).join('\n  ')}`);
  }
}

function run(...args) {
  return execFileSync(weir, args, {cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});
}
// Exit code 1: does not fit in memory.
function runAnyway(...args) {
  const done = spawnSync(weir, args, {cwd: folder, encoding: 'utf8'});
  assert.ok(done.status <= 1, done.stderr);
  return done.stdout;
}

async function violations(page) {
  await page.evaluate(axeSource);
  const result = await page.evaluate(() => window.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}));
  return result.violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
}

const view = page => page.evaluate(() => window.weirTimeline.currentView());

// ---- files

const costs = ['--costs', 'f=1,b=2,c=0.1', '--pp', '4', '--microbatches', '8'];
const preset = 'pipedream-2bw-gpt-2.2b';
run('simulate', '--schedule', '1f1b', ...costs, '--report', 'costs.html', '--out', 'costs.pb');
const oneJson = JSON.parse(runAnyway('simulate', preset, '--schedule', '1f1b', '--format', 'json', '--report', 'one.html'));
const severalJson = JSON.parse(runAnyway('compare', preset, '--schedule', 'gpipe,1f1b,pipedream-2bw', '--format', 'json',
                                         '--report', 'several.html'));
run('report', 'costs.pb', '-o', 'stored.html');

const hostile = ['</script><script>window.evil = 1</script>', '"\'><img src=x onerror="window.evil=2">', '\u{1F680} \u202Egnp.exe \u05E9\u05DC\u05D5\u05DD',
                 `${'x'.repeat(10000)}`, '{{constructor}} <!-- -->'];
hostile.forEach((name, i) => {
  const escaped = [...Buffer.from(name)].map(byte => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  const scenario = run('scenario', 'show', preset).replace(/^name: .*$/m, '');
  writeFileSync(join(folder, `hostile${i}.textproto`), `name: "${escaped}"\n${scenario}`);
  runAnyway('simulate', `hostile${i}.textproto`, '--schedule', '1f1b', '--force', '--report', `hostile${i}.html`);
});

// ---- tests

const files = ['costs.html', 'one.html', 'several.html', 'stored.html'];
for (const file of files) {
  await test(`${file} opens from file:// without errors and requests`, async () => {
    const {page, problems, context} = await open(browser, join(folder, file));
    assert.deepEqual(problems, []);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.failed ?? ''), '');
    for (const id of ['figures', 'timeline', 'step', 'idle', 'memory', 'ranks', 'configuration']) {
      assert.equal(await page.locator(`#${id}`).count(), 1, id);
    }
    await context.close();
  });
}

async function figuresEqual(file, results) {
  const {page, context} = await open(browser, join(folder, file));
  const shown = await page.evaluate(() => [...document.querySelectorAll('[data-json]')].map(element => ({...element.dataset})));
  let compared = 0;
  for (const {json, run: index, value} of shown) {
    if (json === '' || value === '') continue;
    assert.equal(Number(value), results[Number(index)][json], json);
    compared++;
  }
  assert.ok(compared >= 8 * results.length, `${compared} figures`);
  await context.close();
}
await test('figures of one run equal --format json', () => figuresEqual('one.html', [oneJson.result]));
await test('figures of several runs equal --format json', () => figuresEqual('several.html', severalJson.results));

await test('figures are shown as in the table', async () => {
  const {page, context} = await open(browser, join(folder, 'one.html'));
  const table = runAnyway('simulate', preset, '--schedule', '1f1b', '--wide');
  for (const key of ['batch_seconds', 'tokens_per_second', 'peak_memory_bytes', 'idle_ratio']) {
    const text = await page.locator(`[data-json="${key}"]`).innerText();
    assert.ok(table.includes(text), `${key}: ${text}`);
  }
  await context.close();
});

await test('zoom and pan with buttons, keys, wheel and dragging', async () => {
  const {page, context} = await open(browser, join(folder, 'one.html'));
  const whole = await view(page);
  const span = ({from, to}) => to - from;
  await page.getByLabel('Zoom in').click();
  assert.ok(Math.abs(span(await view(page)) / span(whole) - 0.5) < 1e-6);
  const box = page.locator('.tl-box');
  await box.focus();
  await page.keyboard.press('+');
  assert.ok(Math.abs(span(await view(page)) / span(whole) - 0.25) < 1e-6);
  const before = await view(page);
  await page.keyboard.press('ArrowRight');
  assert.ok((await view(page)).from > before.from);
  await box.scrollIntoViewIfNeeded();
  const bounds = await box.boundingBox();
  await page.mouse.move(bounds.x + bounds.width / 2, bounds.y + 60);
  await page.mouse.wheel(0, -200);
  await page.waitForTimeout(100);
  const zoomed = await view(page);
  assert.ok(span(zoomed) < span(before));
  await page.mouse.down();
  await page.mouse.move(bounds.x + bounds.width / 2 - 150, bounds.y + 60, {steps: 5});
  await page.mouse.up();
  assert.ok((await view(page)).from > zoomed.from);
  await page.keyboard.press('0');
  assert.deepEqual(await view(page), whole);
  // The map of the run.
  await page.getByLabel('Zoom in').click();
  const map = await page.locator('.tl-map').boundingBox();
  await page.mouse.click(map.x + 0.6 * map.width, map.y + 20);
  const {from, to} = await view(page);
  assert.ok(Math.abs((from + to) / 2 / whole.to - 0.6) < 0.01);
  await context.close();
});

await test('search finds slices and shows them', async () => {
  const {page, context} = await open(browser, join(folder, 'costs.html'));
  const search = page.getByLabel('Search the timeline');
  const count = async text => {
    await search.fill(text);
    return page.locator('.tl-count').innerText();
  };
  assert.equal(await count('2F5'), '1 match');
  assert.equal(await count('F'), `${4 * 8} matches`);
  assert.equal(await count('stage 3 B'), '8 matches');
  assert.equal(await count('no-such'), 'no such word');
  await search.fill('3B7');
  const before = await view(page);
  await search.press('Enter');
  const after = await view(page);
  assert.ok(after.to - after.from <= before.to - before.from);
  const info = await page.locator('.tl-info').innerText();
  assert.match(info, /3B7/);
  assert.match(info, /microbatch\s*7/);
  assert.match(info, /weight version/);
  await context.close();
});

await test('pointing at slices shows what they are and why ranks wait', async () => {
  const {page, context} = await open(browser, join(folder, 'costs.html'));
  const box = page.locator('.tl-box');
  await box.scrollIntoViewIfNeeded();
  const bounds = await box.boundingBox();
  // The last rank waits for the first forward.
  const rows = await page.evaluate(() => window.weirTimeline.layout.rows
    .filter(({row}) => row.lane === 'compute').map(({top, height}) => top + height / 2));
  await page.mouse.move(bounds.x + 71 + 4, bounds.y + 24 + rows[3]);
  const tip = await page.locator('.tl-tip').innerText();
  assert.match(tip, /waits for a pass/);
  assert.match(tip, /3F0, input 2F0 from rank 2/);
  await page.mouse.move(bounds.x + 71 + 4, bounds.y + 24 + rows[0] + 1);
  assert.match(await page.locator('.tl-tip').innerText(), /0F0/);
  await context.close();
});

await test('idle time by cause adds up to the run', async () => {
  const {page, context} = await open(browser, join(folder, 'costs.html'));
  await page.getByLabel('Copy CSV: idle time by cause').click();
  const [head, ...rows] = (await page.evaluate(() => window.weirLastCsv)).trim().split('\n').map(line => line.split(','));
  assert.equal(rows.length, 4);
  for (const row of rows) {
    const parts = row.slice(1, head.indexOf('sum')).map(Number);
    assert.ok(Math.abs(parts.reduce((a, b) => a + b, 0) - Number(row.at(-1))) < 1e-9, row.join());
  }
  await context.close();
});

await test('every chart copies its data as CSV', async () => {
  const {page, context} = await open(browser, join(folder, 'several.html'));
  const buttons = page.locator('button.csv');
  assert.equal(await buttons.count(), await page.locator('.chart').count());
  for (let i = 0; i < await buttons.count(); i++) {
    await page.evaluate(() => (window.weirLastCsv = ''));
    await buttons.nth(i).click();
    const lines = (await page.evaluate(() => window.weirLastCsv)).trim().split('\n');
    assert.ok(lines.length > 1, await buttons.nth(i).getAttribute('aria-label'));
  }
  await context.close();
});

await test('the waterfall goes from one step time to the other', async () => {
  const {page, context} = await open(browser, join(folder, 'several.html'));
  await page.getByLabel('Copy CSV: the changes from A to B').click();
  const rows = (await page.evaluate(() => window.weirLastCsv)).trim().split('\n').slice(1).map(line => line.split(',').map(Number));
  const total = rows.pop();
  const sum = rows.reduce((all, row) => all + row[3], 0);
  assert.ok(Math.abs(sum - total[3]) < 1e-9 * Math.abs(total[1]));
  assert.equal(total[1], severalJson.results[0].batch_seconds);
  await context.close();
});

await test('the button changes the theme', async () => {
  const {page, context} = await open(browser, join(folder, 'one.html'), {colorScheme: 'light'});
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'light');
  await page.getByRole('button', {name: 'Dark', exact: true}).click();
  assert.equal(await theme(), 'dark');
  await page.getByRole('button', {name: 'Light', exact: true}).click();
  assert.equal(await theme(), 'light');
  await context.close();
});

for (const [i, name] of hostile.entries()) {
  await test(`name ${i} is text`, async () => {
    const {page, problems, context} = await open(browser, join(folder, `hostile${i}.html`));
    assert.deepEqual(problems, []);
    assert.equal(await page.evaluate(() => window.evil), undefined);
    assert.equal(await page.locator('script').count(), 2);
    assert.equal(await page.locator('img').count(), 0);
    assert.ok((await page.locator('h1').textContent()).includes(name));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'overflow');
    await context.close();
  });
}

for (const colorScheme of ['light', 'dark']) {
  for (const [width, file] of [[1280, 'one.html'], [360, 'several.html'], [1280, 'several.html']]) {
    await test(`axe finds nothing: ${file}, ${colorScheme}, ${width} px`, async () => {
      const {page, context} = await open(browser, join(folder, file), {viewport: {width, height: 800}, colorScheme});
      await page.evaluate(() => document.querySelectorAll('details').forEach(element => (element.open = true)));
      await page.waitForTimeout(200);
      assert.deepEqual(await violations(page), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'overflow');
      await context.close();
    });
  }
}

await browser.close();
process.exit(failed > 0 ? 1 : 0);
