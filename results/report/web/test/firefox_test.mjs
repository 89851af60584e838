// SPDX-License-Identifier: Apache-2.0
// Opens reports of the built program in Firefox, through WebDriver BiDi.
//
//   node test/firefox_test.mjs WEIR FOLDER       FOLDER: for the files of the test
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, writeFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

import puppeteer from 'puppeteer-core';

import {HOSTILE, hostileScenario} from './hostile.mjs';

const [, , weir, folder] = process.argv;
const executablePath = [process.env.FIREFOX, '/usr/bin/firefox-esr', '/usr/bin/firefox'].find(path => path && existsSync(path));
const run = (...args) => execFileSync(weir, args, {cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});

// Without bytes (a), a page has no memory chart.
const costs = ['--costs', 'f=1,b=2,c=0.1,a=1e9', '--pp', '4', '--microbatches', '8'];
run('simulate', '--schedule', '1f1b', ...costs, '--report', 'one.html', '--force');
run('compare', '--schedule', 'gpipe,1f1b', ...costs, '--report', 'several.html', '--force');
run('sweep', '--costs', 'f=1,b=2,c=0.1', '--microbatches', '8', '--grid', 'pp=2,4', '--grid', 'schedule=gpipe,1f1b', '--out', 'firefox-grid',
    '--report', 'sweep.html', '--force');
writeFileSync(join(folder, 'hostile.textproto'), hostileScenario(HOSTILE.join(' '), run('scenario', 'show', 'pipedream-2bw-gpt-2.2b')));
run('simulate', 'hostile.textproto', '--schedule', '1f1b', '--report', 'hostile.html', '--force');

const browser = await puppeteer.launch({browser: 'firefox', executablePath, headless: true});
let failed = 0;

async function test(title, file, body) {
  const page = await browser.newPage();
  const problems = [];
  page.on('pageerror', error => problems.push(`error: ${error.message}`));
  page.on('console', message => {
    if (['error', 'warn', 'warning', 'assert'].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  const address = pathToFileURL(resolve(folder, file)).href;
  page.on('request', request => {
    if (request.url() !== address && !/^(data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  page.on('dialog', dialog => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  try {
    await page.setViewport({width: 1200, height: 800});
    await page.goto(address);
    await page.waitForFunction(() => document.documentElement.dataset.ready || document.documentElement.dataset.failed, {timeout: 60000});
    assert.equal(await page.evaluate(() => document.documentElement.dataset.failed ?? ''), '');
    await body(page);
    assert.equal(await page.evaluate(() => performance.getEntriesByType('resource').length), 0, 'resources');
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'overflow');
    assert.deepEqual(problems, []);
    console.log(`ok: ${title}`);
  } catch (error) {
    failed++;
    console.log(`FAILED: ${title}\n  ${error.message.split('\n').slice(0, 12).join('\n  ')}\n  ${problems.join('\n  ')}`);
  }
  await page.close();
}

// The number of colors of a canvas: a picture has many, an empty one has one.
const colorsOf = (page, selector) => page.$eval(selector, canvas => {
  const {width, height} = canvas;
  return new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, width, height).data.buffer)).size;
});
const view = page => page.evaluate(() => window.weirTimeline.currentView());

await test('a run opens, is drawn, zooms and is searched', 'one.html', async page => {
  assert.ok(await colorsOf(page, '.tl-base') > 3);
  assert.ok(await colorsOf(page, '.uplot canvas') > 1);
  const whole = await view(page);
  await page.focus('.tl-box');
  await page.keyboard.press('+');
  const zoomed = await view(page);
  assert.ok(Math.abs((zoomed.to - zoomed.from) / (whole.to - whole.from) - 0.5) < 1e-6);
  await page.keyboard.press('ArrowRight');
  assert.ok((await view(page)).from > zoomed.from);
  await page.type('.tl-search', '2F5');
  assert.equal(await page.$eval('.tl-count', element => element.textContent), '1 match');
  await page.click('button.csv');
  assert.ok((await page.evaluate(() => window.weirLastCsv)).includes('\n'));
  await page.click('button.theme');
  assert.ok(await colorsOf(page, '.tl-base') > 3);
});
await test('a comparison opens', 'several.html', async page => {
  assert.ok(await colorsOf(page, '.tl-base') > 3);
  assert.equal(await page.$$eval('#step', list => list.length), 1);
});
await test('a sweep opens', 'sweep.html', async page => {
  assert.ok(await page.$$eval('.heat', list => list.length) >= 4);
});
await test('hostile names are text', 'hostile.html', async page => {
  assert.equal(await page.evaluate(() => window.evil), undefined);
  assert.equal(await page.$$eval('img', list => list.length), 0);
  const title = await page.$eval('h1', element => element.textContent);
  for (const name of HOSTILE) assert.ok(title.includes(name), name.slice(0, 80));
});

await browser.close();
process.exit(failed > 0 ? 1 : 0);
