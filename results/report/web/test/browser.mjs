// SPDX-License-Identifier: Apache-2.0
// Opens pages in Chromium without display, and reports what a page does wrong.
import {existsSync} from 'node:fs';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

export function chromiumPath() {
  const paths = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  return paths.find(path => path && existsSync(path));
}

export async function launch(playwright) {
  return playwright.chromium.launch({
    executablePath: chromiumPath(),
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
  });
}

// Opens a file or an address of this machine and waits until the page is complete. `problems` collects errors,
// messages of the console and requests. Calls `prepare` with the empty page.
export async function open(browser, file, options = {}, prepare = async () => {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, ...options});
  const page = await context.newPage();
  const problems = [];
  page.on('pageerror', error => problems.push(`error: ${error.message}`));
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  const served = file.startsWith('http:');
  const url = served ? file : pathToFileURL(resolve(file)).href;
  const own = address => (served ? new URL(address).origin === new URL(url).origin : address.split('#')[0] === url);
  page.on('request', request => {
    if (!own(request.url()) && !/^(data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  page.on('dialog', dialog => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await prepare(page);
  const begin = performance.now();
  await page.goto(url);
  await page.waitForFunction(
    () => document.documentElement.dataset.ready || document.documentElement.dataset.failed, null, {timeout: 60000});
  return {page, problems, context, openMs: performance.now() - begin};
}
