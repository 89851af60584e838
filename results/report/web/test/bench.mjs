// SPDX-License-Identifier: Apache-2.0
// Measures the page with a made-up run: size, time to open, and frames of a
// scripted pan and zoom, without a GPU. Prints one JSON object.
//
//   node test/bench.mjs [RANKS MICROBATCHES]     default 64 6000: 1.27 M slices
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {loadavg, tmpdir} from 'node:os';
import {join} from 'node:path';

import * as playwright from 'playwright-core';

import {launch, open} from './browser.mjs';
import {page as makePage} from './synthetic.mjs';

const FRAMES = 240;
const ranks = Number(process.argv[2] ?? 64), microbatches = Number(process.argv[3] ?? 6000);
const folder = mkdtempSync(join(tmpdir(), 'weir-report-'));
const quantile = (values, part) => {
  const sorted = [...values].sort((a, b) => a - b);
  return Number(sorted[Math.floor(part * (sorted.length - 1))].toFixed(1));
};

try {
  const template = readFileSync(new URL('../../template.html', import.meta.url), 'utf8');
  const made = makePage(template, ranks, microbatches);
  const file = join(folder, 'report.html');
  writeFileSync(file, made.page);
  const browser = await launch(playwright);
  // CPU time of the page's main thread, which other programs do not lengthen.
  let session;
  const cpuSeconds = async () => {
    const {metrics} = await session.send('Performance.getMetrics');
    return metrics.find(({name}) => name === 'TaskDuration').value;
  };
  const {page, problems, openMs} = await open(browser, file, {viewport: {width: 1600, height: 900}}, async empty => {
    session = await empty.context().newCDPSession(empty);
    await session.send('Performance.enable', {timeDomain: 'threadTicks'});
  });
  const measured = {slices: made.size, bytes: made.page.length, open_ms: Math.round(openMs),
                    ready_ms: Number(await page.evaluate(() => document.documentElement.dataset.ready)),
                    open_cpu_ms: Math.round(1000 * await cpuSeconds()), problems};
  await page.evaluate(() => document.getElementById('timeline').scrollIntoView({behavior: 'instant'}));
  for (const kind of ['pan', 'zoom']) {
    const before = await cpuSeconds();
    const times = await page.evaluate(([frames, how]) => window.weirAnimate(frames, how), [FRAMES, kind]);
    measured[kind] = {frame_ms_median: quantile(times.frame_ms, 0.5), frame_ms_95: quantile(times.frame_ms, 0.95),
                      paint_ms_median: quantile(times.paint_ms, 0.5), paint_ms_95: quantile(times.paint_ms, 0.95),
                      cpu_ms_mean: Number((1000 * (await cpuSeconds() - before) / FRAMES).toFixed(1))};
  }
  measured.load_average = loadavg()[0];
  console.log(JSON.stringify(measured));
  await browser.close();
} finally {
  rmSync(folder, {recursive: true});
}
