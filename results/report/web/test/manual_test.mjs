// SPDX-License-Identifier: Apache-2.0
// Searches the manual in Chromium.
//
//   node test/manual_test.mjs FOLDER       FOLDER: the site that tools/manual wrote
import assert from 'node:assert/strict';
import {createReadStream, existsSync, statSync} from 'node:fs';
import {createServer} from 'node:http';
import {extname, join, normalize} from 'node:path';

import playwright from 'playwright-core';

import {launch} from './browser.mjs';

const [, , site] = process.argv;
const TYPES = {'.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json', '.svg': 'image/svg+xml'};

const server = createServer((request, response) => {
  let path = join(site, normalize(new URL(request.url, 'http://localhost').pathname));
  if (existsSync(path) && statSync(path).isDirectory()) path = join(path, 'index.html');
  if (!existsSync(path)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {'Content-Type': TYPES[extname(path)] ?? 'application/octet-stream'});
  createReadStream(path).pipe(response);
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const root = `http://127.0.0.1:${server.address().port}`;

const browser = await launch(playwright);
try {
  const page = await browser.newPage();
  const problems = [];
  page.on('pageerror', error => problems.push(`error: ${error.message}`));
  page.on('requestfailed', request => {
    // The next page ends the requests of the one before.
    if (request.failure().errorText !== 'net::ERR_ABORTED') problems.push(`request: ${request.url()}`);
  });
  page.on('response', response => {
    // Not every theme has an icon.
    if (response.status() >= 400 && !response.url().endsWith('favicon.ico')) problems.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(`${root}/`);
  await page.fill('form[role=search] input[name=q], #rtd-search-form input[name=q]', 'checkpoint interval');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/search.html?q=*');
  const results = page.locator('#mkdocs-search-results article a');
  await results.first().waitFor({timeout: 60000});
  const pages = await results.evaluateAll(links => links.map(link => link.getAttribute('href')));
  assert.ok(pages.some(link => link.includes('goodput')), `the search finds ${pages}`);
  const found = pages.find(link => link.includes('goodput'));
  await results.nth(pages.indexOf(found)).click();
  await page.waitForSelector('h1');
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
  server.close();
}
