// SPDX-License-Identifier: Apache-2.0
// Tests reports of the built program in a browser.
//
//   node test/report_test.mjs WEIR FOLDER       FOLDER: for the files of the test
import assert from 'node:assert/strict';
import {execFileSync, spawn, spawnSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

import * as playwright from 'playwright-core';

import {launch, open} from './browser.mjs';
import {HOSTILE, hostileDocuments, hostileScenario} from './hostile.mjs';

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

// Rules whose result depends on the colors.
const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

async function violations(page, rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axeSource);
  // Without resultTypes, axe describes everything that passes as well.
  const result = await page.evaluate(runOnly => window.axe.run(document, {runOnly, resultTypes: ['violations']}), rules);
  return result.violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
}

// Rules whose result depends on the width of the window.
const WIDTH_RULES = ['color-contrast', 'scrollable-region-focusable'];

// Checks a page in light colors, and what depends on colors in dark ones and on the width in a narrow window: everything
// else is the same.
async function checkAccess(page) {
  await page.evaluate(() => document.querySelectorAll('details').forEach(element => (element.open = true)));
  await page.waitForTimeout(200);
  assert.deepEqual(await violations(page), [], 'light');
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'overflow');
  await page.emulateMedia({colorScheme: 'dark'});
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
  assert.deepEqual(await violations(page, COLOR_RULES), [], 'dark');
  await page.setViewportSize({width: 360, height: 800});
  await page.waitForTimeout(200);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'overflow, 360 px');
  assert.deepEqual(await violations(page, WIDTH_RULES), [], '360 px');
}

// Records what a page draws as text on canvases; texts(page) returns it since the last call.
const recordTexts = page => page.addInitScript(() => {
  window.drawnTexts = [];
  const {fillText} = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function(text, ...rest) {
    window.drawnTexts.push(text);
    return fillText.call(this, text, ...rest);
  };
});
const texts = page => page.evaluate(() => window.drawnTexts.splice(0));

// Drags with the mouse from one part of the width of an element to another.
async function drag(page, element, from, to) {
  await element.scrollIntoViewIfNeeded();
  const {x, y, width, height} = await element.boundingBox();
  await page.mouse.move(x + from * width, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + to * width, y + height / 2, {steps: 5});
  await page.mouse.up();
  await page.waitForTimeout(100);
}

// Opens the report of a document that is changed.
async function openDocument(document, prepare) {
  writeFileSync(join(folder, 'changed.json'), JSON.stringify(document));
  run('report', 'changed.json', '-o', 'changed.html', '--force');
  const opened = await open(browser, join(folder, 'changed.html'), {}, prepare);
  await opened.page.waitForTimeout(200);
  return opened;
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

// Other commands: their pages show their JSON output.
const hasJson = (command, file, ...args) => JSON.parse(runAnyway(...command, ...args, '--format', 'json', '--report', file, '--force'));
const planJson = hasJson(['plan'], 'plan.html', '--model', 'gpt2', '--cluster', 'dgx-h100', '--gpus', '4', '--gbs', '16', '--schedule', '1f1b,gpipe',
                         '--plans', '6', '--price-per-gpu-hour', '2.5', '--mbs', '1', '--recompute', 'none');
run('sweep', '--costs', 'f=1,b=2,c=0.1', '--microbatches', '8', '--grid', 'pp=2,4,8', '--grid', 'schedule=gpipe,1f1b,zb-h1', '--out', 'grid',
    '--report', 'sweep.html');
const sweepJson = JSON.parse(run('collect', 'grid', '--format', 'json'));
writeFileSync(join(folder, 'runs.csv'), 'name,schedule,pp,microbatches,costs,step_seconds\nflush,gpipe,4,8,"f=1,b=2",30\n' +
  'steady,1F1B,4,12,"f=1,b=2",50\nshort,1f1b,3,4,"f=1,b=2",12\n');
const validateJson = hasJson(['validate'], 'validate.html', '--measured', 'runs.csv');
// A report of one run has its sensitivities, too.
runAnyway('report', preset, '--schedule', '1f1b', '-o', 'scenario.html');
const explainJson = hasJson(['explain'], 'explain.html', preset, '--schedule', '1f1b');
const synthesisJson = hasJson(['schedule', 'synthesize'], 'synthesis.html', '--pp', '3', '--microbatches', '4', '--costs', 'f=1,i=1,w=1,c=0.1',
                              '--method', 'local');
const studyJson = hasJson(['train-study'], 'study.html', '--schedule', 'gpipe,pipedream-2bw', '--updates', '40', '--seeds', '2');
// GPipe on two replicas of three ranks; one worker is slow.
const trace = ['step,dp_rank,stage,optype,start_ts,duration,mc,mb_id'];
for (const step of [10, 20, 30]) {
  for (const replica of [0, 1]) {
    for (const rank of [0, 1, 2]) {
      const factor = replica === 1 && rank === 1 ? 2 : 1;
      for (let i = 0; i < 4; i++) {
        trace.push(`${step},${replica},${rank},forward-compute,${2 * (rank + i)},${factor},0,${i}`,
                   `${step},${replica},${rank},backward-compute,${20 + 4 * (2 - rank + i)},${2 * factor},0,${i}`);
      }
    }
  }
}
writeFileSync(join(folder, 'trace.csv'), `${trace.join('\n')}\n`);
const stragglersJson = hasJson(['stragglers'], 'stragglers.html', 'trace.csv');
const goodputJson = hasJson(['goodput'], 'goodput.html', '--step-seconds', '105', '--num-gpus', '384', '--checkpoint-bytes', '2.3e12',
                            '--checkpoint-bandwidth', '57.5e9', '--price-per-gpu-hour', '2', '--target-goodput', '0.9', '--runs', '30');
writeFileSync(join(folder, 'profile.csv'), 'stage,instruction,frequency,time,energy\n' + [0, 1].flatMap(stage => ['forward', 'backward'].flatMap((pass, i) =>
  [1, 2].map(slow => `${stage},${pass},${1400 / slow},${(1 + stage) * (1 + i) * slow},${(1 + stage) * (1 + i) * (400 - 100 * slow)}`))).join('\n') + '\n');
const energyJson = hasJson(['energy'], 'energy.html', 'profile.csv', '--blocking-power', '50', '--microbatches', '4', '--stragglers', '1.5,2',
                           '--power-cap', '200');
hasJson(['validate'], 'execution.html', '--replay', 'costs.pb', '--against', 'costs.pb');
const documents = {'plan.html': 'plan', 'sweep.html': 'sweep', 'validate.html': 'validation', 'explain.html': 'explanation', 'scenario.html': 'explanation',
                   'synthesis.html': 'synthesis', 'study.html': 'study', 'execution.html': 'execution',
                   'stragglers.html': 'stragglers', 'goodput.html': 'goodput', 'energy.html': 'energy'};
// The same pages from stored JSON.
writeFileSync(join(folder, 'plan.json'), JSON.stringify(planJson));
run('report', 'plan.json', '-o', 'plan-stored.html');
run('report', 'grid', '-o', 'sweep-stored.html');

const scenario = run('scenario', 'show', preset);
HOSTILE.forEach((name, i) => {
  writeFileSync(join(folder, `hostile${i}.textproto`), hostileScenario(name, scenario));
  runAnyway('simulate', `hostile${i}.textproto`, '--schedule', '1f1b', '--force', '--report', `hostile${i}.html`);
});

// ---- tests

const files = ['costs.html', 'one.html', 'several.html', 'stored.html'];
for (const file of files) {
  await test(`${file} opens from file:// without errors and requests`, async () => {
    const {page, problems, context} = await open(browser, join(folder, file));
    assert.deepEqual(problems, []);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.failed ?? ''), '');
    for (const id of ['figures', 'timeline', 'step', 'idle', 'links', 'memory', 'ranks', 'configuration']) {
      assert.equal(await page.locator(`#${id}`).count(), 1, id);
    }
    await context.close();
  });
}

await test('the page of a scenario has all sections of a run, and sensitivities', async () => {
  const {page, context} = await open(browser, join(folder, 'scenario.html'));
  for (const id of ['explanation', 'figures', 'timeline', 'idle', 'links', 'shared-links', 'roofline', 'memory']) {
    assert.equal(await page.locator(`#${id}`).count(), 1, id);
  }
  await context.close();
});

// Splits a line of CSV.
const fieldsOf = line =>
  [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain);

// Checks that the copied CSV has rows, and columns with different names.
async function checkCsv(page, label) {
  const lines = (await page.evaluate(() => window.weirLastCsv)).trim().split('\n');
  assert.ok(lines.length > 1, label);
  const names = fieldsOf(lines[0]);
  assert.equal(new Set(names).size, names.length, `${label}: ${names}`);
}

for (const [file, id] of [...Object.entries(documents), ['plan-stored.html', 'plan'], ['sweep-stored.html', 'sweep']]) {
  await test(`${file} opens without errors, and every chart copies its data`, async () => {
    const {page, problems, context} = await open(browser, join(folder, file));
    await page.waitForTimeout(100);
    assert.deepEqual(problems, []);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.failed ?? ''), '');
    assert.equal(await page.locator(`#${id}`).count(), 1);
    const buttons = page.locator('button.csv');
    assert.equal(await buttons.count(), await page.locator('.chart').count());
    for (let i = 0; i < await buttons.count(); i++) {
      await page.evaluate(() => (window.weirLastCsv = ''));
      await buttons.nth(i).click();
      await checkCsv(page, await buttons.nth(i).getAttribute('aria-label'));
    }
    await context.close();
  });
}

// Returns the rows of a chart's CSV as objects.
async function csvOf(page, label) {
  await page.getByLabel(`Copy CSV: ${label}`, {exact: true}).click();
  const lines = (await page.evaluate(() => window.weirLastCsv)).trim().split('\n');
  const head = fieldsOf(lines[0]);
  return lines.slice(1).map(line => Object.fromEntries(fieldsOf(line).map((value, i) => [head[i], value])));
}
const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-12 * Math.abs(b), `${a}, expected ${b}`);

await test('plans are those of --format json', async () => {
  const {page, context} = await open(browser, join(folder, 'plan.html'));
  const {plans, neighbors} = planJson.result;
  assert.ok(plans.length > 1);
  const rows = await csvOf(page, 'the layouts');
  assert.equal(rows.length, plans.length);
  rows.forEach((row, i) => {
    near(Number(row['Step time']), plans[i].batch_seconds);
    near(Number(row['Peak memory']), plans[i].peak_memory_bytes);
    near(Number(row['Above bound']), plans[i].gap);
    assert.equal(Number(row.tensor), plans[i].tensor);
  });
  const losses = await csvOf(page, 'why each plan loses');
  plans.slice(1).forEach((plan, i) => assert.equal(losses[i + 1]['Why it is not the best'], plan.why_not_best));
  if (neighbors.length > 0) assert.equal((await csvOf(page, 'one choice changed')).length, neighbors.length);
  // The front: no plan is better in both goals.
  for (const row of await csvOf(page, 'the goals of each plan')) {
    const beaten = plans.some(plan => plan.batch_seconds <= Number(row['step time']) && plan.peak_memory_bytes <= Number(row['peak memory']) &&
      (plan.batch_seconds < Number(row['step time']) || plan.peak_memory_bytes < Number(row['peak memory'])));
    assert.equal(row['On the front'], beaten ? 'no' : 'yes');
  }
  await context.close();
});

await test('the heat map is the pivot of any two fields and any metric', async () => {
  const {page, context} = await open(browser, join(folder, 'sweep.html'));
  const heat = async () => csvOf(page, 'the heat map');
  const best = (key, value, field, of, metric) => Math.min(...sweepJson.result.points
    .filter(point => point.outcome === 'done' && String(point[key]) === value && String(point[field]) === of).map(point => point[metric]));
  let rows = await heat();
  assert.equal(rows.length, 3);
  for (const row of rows) {
    for (const schedule of ['gpipe', '1f1b']) near(Number(row[schedule]), best('pp', row['pp \\ schedule'], 'schedule', schedule, 'batch_seconds'));
    assert.equal(row['zb-h1'], 'refused');
  }
  await page.getByRole('combobox', {name: 'Metric'}).selectOption({label: 'bubble'});
  await page.getByRole('combobox', {name: 'Rows'}).selectOption({label: 'schedule'});
  await page.getByRole('combobox', {name: 'Columns'}).selectOption({label: 'pp'});
  rows = await heat();
  const gpipe = rows.find(row => row['schedule \\ pp'] === 'gpipe');
  near(Number(gpipe['4']), best('pp', '4', 'schedule', 'gpipe', 'bubble_ratio'));
  await context.close();
});

await test('reasons of several lines are separated', async () => {
  const sweep = structuredClone(sweepJson);
  sweep.result.points.find(point => point.outcome === 'refused').error = 'model.heads is 25\n  parallelism.tensor is 2\n';
  const {page, context} = await openDocument(sweep);
  const reasons = (await csvOf(page, 'points that were not simulated')).map(row => row.Reason);
  assert.ok(reasons.includes('model.heads is 25; parallelism.tensor is 2'), reasons.join('\n'));
  await context.close();
});

await test('labels of many values do not overlap', async () => {
  const plan = structuredClone(planJson);
  plan.result.plans = Array.from({length: 23}, (_, i) => ({...planJson.result.plans[0], layers: `${i + 1},${24 - i}`}));
  const {page, context} = await openDocument(plan);
  const boxes = await page.evaluate(() => [...document.querySelectorAll('.parallel-tick')].map(tick => {
    const {left, top, bottom} = tick.getBoundingClientRect();
    return {left, top, bottom, text: tick.textContent};
  }));
  assert.ok(boxes.some(({text}) => text === '1,24'));
  for (const one of boxes) {
    for (const other of boxes) {
      if (one === other || one.left !== other.left || one.top > other.top) continue;
      assert.ok(one.bottom <= other.top + 2, `${one.text} and ${other.text}`);
    }
  }
  assert.match(await page.locator('.parallel-line title').nth(5).textContent(), /layers \d+,\d+/);
  await context.close();
});

await test('intervals that would hide the differences of plans are not shown at first', async () => {
  const withIntervals = factor => {
    const plan = structuredClone(planJson);
    const range = key => Math.max(...plan.result.plans.map(one => one[key])) - Math.min(...plan.result.plans.map(one => one[key]));
    for (const key of ['batch_seconds', 'peak_memory_bytes']) {
      const width = factor * range(key);
      assert.ok(width > 0);
      plan.result.plans.forEach(one => Object.assign(one, {[`${key}_low`]: one[key] - width, [`${key}_high`]: one[key] + width}));
    }
    return plan;
  };
  const narrow = await openDocument(withIntervals(0.5));
  assert.ok(await narrow.page.getByLabel('intervals').isChecked());
  await narrow.context.close();
  const {page, context} = await openDocument(withIntervals(10), recordTexts);
  const box = page.getByLabel('intervals');
  assert.ok(!(await box.isChecked()));
  const ticks = async () => {
    await page.waitForTimeout(200);
    return [...new Set(await texts(page))];
  };
  const near = await ticks();
  await box.check();
  const wide = await ticks();
  assert.notDeepEqual(wide, near);
  await box.uncheck();
  assert.deepEqual(await ticks(), near);
  // Dragging zooms.
  assert.match(await page.locator('.plot-near').innerText(), /Drag to zoom/);
  const plot = page.locator('#plan .u-over');
  await drag(page, plot, 0.2, 0.6);
  assert.notDeepEqual(await ticks(), near);
  await plot.dblclick();
  assert.deepEqual(await ticks(), near);
  await context.close();
});

await test('validation shows the numbers of --format json', async () => {
  const {page, context} = await open(browser, join(folder, 'validate.html'));
  const rows = await csvOf(page, 'predicted and measured');
  validateJson.result.numbers.forEach((number, i) => {
    near(Number(rows[i].Measured), number.measured);
    near(Number(rows[i].Predicted), number.predicted);
  });
  await page.getByRole('combobox', {name: 'Field'}).selectOption({label: 'schedule'});
  const errors = await csvOf(page, 'errors by field');
  const flush = errors.find(row => row.schedule === 'gpipe');
  near(Number(flush['Mean error']), validateJson.result.numbers[0].error);
  await context.close();
});

await test('explain, synthesize and train-study show the numbers of --format json', async () => {
  const explain = await open(browser, join(folder, 'explain.html'));
  const parameters = await csvOf(explain.page, 'sensitivities');
  assert.equal(parameters.length, explainJson.result.parameters.length);
  near(Number(parameters[0].Elasticity), explainJson.result.parameters[0].elasticity);
  await explain.context.close();
  const synthesis = await open(browser, join(folder, 'synthesis.html'));
  const named = await csvOf(synthesis.page, 'found and named schedules');
  near(Number(named[0].makespan), synthesisJson.result.value_seconds);
  assert.equal(named.length, 1 + synthesisJson.result.named.length);
  assert.equal(await synthesis.page.locator('#timeline').count(), 1);
  await synthesis.context.close();
  const study = await open(browser, join(folder, 'study.html'));
  const losses = await csvOf(study.page, 'the loss of every batch');
  const all = studyJson.result.schedules.flatMap(schedule => schedule.curves.flatMap(curve => curve.losses));
  assert.equal(losses.length, all.length);
  losses.forEach((row, i) => near(Number(row.loss), all[i]));
  await study.context.close();
});

await test('stragglers, goodput and energy show the numbers of --format json', async () => {
  const rowsEqual = (rows, expected) => {
    assert.equal(rows.length, expected.length);
    rows.forEach((row, i) => Object.entries(expected[i]).forEach(([column, value]) => near(Number(row[column]), value)));
  };
  const stragglers = await open(browser, join(folder, 'stragglers.html'));
  const slow = stragglersJson.result;
  assert.ok(slow.slowdown > 1.1);
  for (const [name, key] of [['operation', 'by_kind'], ['stage', 'by_stage'], ['replica', 'by_replica']]) {
    rowsEqual(await csvOf(stragglers.page, `the slowdown by ${name}`), slow[key].map(one => ({Slowdown: one.slowdown})));
  }
  const workers = await csvOf(stragglers.page, 'the slowdown of workers');
  for (const {replica, rank, slowdown} of slow.by_worker) near(Number(workers[replica][rank]), slowdown);
  rowsEqual(await csvOf(stragglers.page, 'the slack of stages'), slow.slack_seconds_by_stage.map(value => ({'Median slack': value})));
  rowsEqual(await csvOf(stragglers.page, 'the times of each step'), slow.steps.map(step => ({Recorded: step.recorded_seconds, Ideal: step.ideal_seconds})));
  assert.equal(await stragglers.page.locator('.verdict').innerText(), slow.suspect);
  await stragglers.context.close();
  const goodput = await open(browser, join(folder, 'goodput.html'));
  const {shares, tried_intervals, failures, investments} = goodputJson.result;
  const parts = await csvOf(goodput.page, 'the parts of the time');
  assert.deepEqual(parts.map(row => Number(row.Share)), Object.values(shares));
  near(parts.reduce((sum, row) => sum + Number(row.Share), 0), 1);
  rowsEqual(await csvOf(goodput.page, 'the checkpoint intervals'), tried_intervals.map(one => ({'Wall time': one.wall_seconds, Goodput: one.goodput})));
  rowsEqual(await csvOf(goodput.page, 'the failures'), failures.map(one => ({'Mean time between': one.mean_seconds_between})));
  rowsEqual(await csvOf(goodput.page, 'the investments'), investments.map(one => ({'Saved time': one.saved_seconds})));
  await goodput.context.close();
  const energy = await open(browser, join(folder, 'energy.html'));
  const {baseline, fastest, least_energy, power_cap, frontier, clocks} = energyJson.result;
  rowsEqual(await csvOf(energy.page, 'the plans of clocks'),
            [baseline, fastest, least_energy, power_cap.plan, ...frontier].map(plan => ({Time: plan.seconds, Energy: plan.joules})));
  rowsEqual(await csvOf(energy.page, 'the clocks of stages'), clocks.map(one => ({'Mean clock': one.mean_mhz, 'Lowest clock': one.lowest_mhz})));
  rowsEqual(await csvOf(energy.page, 'the energy with stragglers'), energyJson.result.stragglers.map(one => ({Energy: one.joules})));
  await energy.context.close();
});

await test('slack of ranks is that of weir slack', async () => {
  const {page, context} = await open(browser, join(folder, 'costs.html'));
  const [slack] = JSON.parse(run('slack', '--schedule', '1f1b', ...costs, '--format', 'json')).result.schedules;
  const rows = await csvOf(page, 'the slack of each rank');
  assert.equal(rows.length, 4 * 2 + 2 * 3);  // passes, transfers over three hops
  for (const row of rows) {
    const passes = slack.passes.filter(pass => pass.rank === Number(row.Rank) && pass.action.includes(row.Of));
    if (row.Of.length > 1) continue;
    assert.equal(passes.length, Number(row.Number));
    near(Number(row['Largest slack']), Math.max(...passes.map(pass => pass.slack_seconds)));
  }
  await context.close();
});

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

await test('a prediction and its execution are not ranked', async () => {
  for (const [file, count] of [['several.html', 1], ['execution.html', 0]]) {
    const {page, context} = await open(browser, join(folder, file));
    assert.equal(await page.locator('#figures .verdict').count(), count, file);
    await context.close();
  }
});

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

await test('headings of timelines fit into a narrow window', async () => {
  const {page, context} = await open(browser, join(folder, 'several.html'), {viewport: {width: 360, height: 800}}, recordTexts);
  await page.waitForTimeout(200);
  const headings = (await texts(page)).filter(text => text.includes('one of'));
  assert.ok(headings.some(text => /^pipedream-2bw .*pipelines$/.test(text)), headings.join('\n'));
  await context.close();
});

const bytesOf = text => {
  const [, number, unit] = /^([\d.]+) (B|KiB|MiB|GiB)$/.exec(text);
  return Number(number) * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(unit);
};

await test('memory over time is read at the pointer, not at the nearest sample', async () => {
  const {page, context} = await open(browser, join(folder, 'one.html'));
  const plot = page.locator('#memory .u-over');
  await plot.scrollIntoViewIfNeeded();
  const rank = await page.locator('#memory label', {hasText: 'Rank'}).locator('select').evaluate(element => element.selectedOptions[0].text);
  const rows = (await csvOf(page, 'memory over time')).filter(row => `rank ${row.rank}` === rank);
  // The longest step; the last row repeats the one before it.
  const gaps = rows.slice(1, -1).map((row, i) => Number(row.seconds) - Number(rows[i].seconds));
  const longest = gaps.indexOf(Math.max(...gaps)), step = rows[longest];
  const begin = Number(rows[0].seconds), whole = Number(rows.at(-1).seconds) - begin;
  const part = along => (Number(step.seconds) - begin + along * gaps[longest]) / whole;
  const check = async () => {
    const shown = await page.evaluate(() => [...document.querySelectorAll('#memory .u-legend .u-series')].map(row =>
      [row.querySelector('.u-label').textContent, row.querySelector('.u-value').textContent]));
    assert.equal(shown[0][0], 'since');
    assert.ok(Math.abs(Number.parseFloat(shown[0][1]) * (shown[0][1].endsWith(' ms') ? 1e-3 : 1) - Number(step.seconds)) < 0.01, shown[0][1]);
    for (const [label, text] of shown.slice(1)) {
      const expected = Number(step[label.replaceAll(' ', '_')] || 0);
      assert.ok(Math.abs(bytesOf(text) - expected) <= 0.01 * expected + 1024, `${label}: ${text}, expected ${expected}`);
    }
  };
  const {x, y, width, height} = await plot.boundingBox();
  await page.mouse.move(x + part(0.8) * width, y + height / 2);
  await check();
  // Inside the step.
  await drag(page, plot, part(0.4), part(0.9));
  await page.mouse.move(x + 0.7 * width, y + height / 2);
  await check();
  await context.close();
});

await test('times of an axis are as far apart as their texts', async () => {
  const {page, context} = await open(browser, join(folder, 'one.html'), {}, recordTexts);
  const plot = page.locator('#memory .u-over');
  for (const to of [0.9, 0.6, 0.5, 0.7]) {
    await plot.scrollIntoViewIfNeeded();
    await texts(page);
    await drag(page, plot, 0, to);
    const drawn = (await texts(page)).filter(text => /^[\d.]+ m?s$/.test(text));
    // Those of the last drawing, which begins at 0.
    const all = drawn.map(text => Number.parseFloat(text) * (text.endsWith('ms') ? 1e-3 : 1));
    const times = all.slice(all.lastIndexOf(0));
    assert.ok(times.length > 3, drawn.join());
    times.slice(2).forEach((time, i) => assert.ok(Math.abs(time - 2 * times[i + 1] + times[i]) < 1e-9, drawn.join()));
  }
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

await test('kernels are shown with the limits of the device, costs have none', async () => {
  const {page, context} = await open(browser, join(folder, 'one.html'));
  const rows = await csvOf(page, 'the rates of kernels');
  assert.ok(rows.length > 3);
  near(rows.reduce((sum, row) => sum + Number(row['Part of their time']), 0), 1);
  const gemms = rows.find(row => row.Kernels.includes('gemm'));
  near(Number(gemms['FLOP/s']) / Number(gemms['Of the peak']), 125e12);  // V100
  const ratios = rows.map(row => Number(row['Of the roof'])).filter(ratio => !Number.isNaN(ratio));
  assert.ok(ratios.length > 1 && ratios.every(ratio => ratio > 0 && ratio <= 1), ratios.join());
  await page.waitForSelector('#roofline canvas');
  await context.close();
  const costs = await open(browser, join(folder, 'costs.html'));
  assert.equal(await costs.page.locator('#roofline, #shared-links').count(), 0);
  await costs.context.close();
});

await test('shared links are shown over time', async () => {
  const {page, context} = await open(browser, join(folder, 'one.html'));
  const rows = await csvOf(page, 'the utilization of links over time');
  assert.equal(rows.length, 120);
  const links = await page.locator('#shared-links tbody tr').count();
  assert.equal(Object.keys(rows[0]).length, links + 1);
  assert.equal(await page.locator('.link-area path').count(), links);
  await context.close();
});

await test('every chart copies its data as CSV', async () => {
  const {page, context} = await open(browser, join(folder, 'several.html'));
  const buttons = page.locator('button.csv');
  assert.equal(await buttons.count(), await page.locator('.chart').count());
  for (let i = 0; i < await buttons.count(); i++) {
    await page.evaluate(() => (window.weirLastCsv = ''));
    await buttons.nth(i).click();
    await checkCsv(page, await buttons.nth(i).getAttribute('aria-label'));
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

await test('passes of several runs are compared and aligned', async () => {
  const {page, context} = await open(browser, join(folder, 'several.html'));
  const search = page.getByLabel('Search the timeline');
  await search.fill('3B2');
  await search.press('Enter');
  const info = await page.locator('.tl-info').innerText();
  assert.match(info, /in (gpipe|1f1b|pipedream-2bw)\s+rank 3, starts/);
  const starts = () => page.evaluate(() => {
    const {slices, selected, twins} = window.weirTimeline;
    return [selected, ...twins].map(i => slices.start[i] - slices.rowOf(i).shift);
  });
  assert.equal((await starts()).length, 3);
  assert.ok(new Set(await starts()).size > 1);
  await page.getByLabel('align at the selected pass').check();
  assert.equal(new Set(await starts()).size, 1);
  await page.getByLabel('align at the selected pass').uncheck();
  assert.ok(new Set(await starts()).size > 1);
  // The orders of gpipe and 1f1b differ.
  await page.getByRole('button', {name: 'Differences'}).click();
  assert.match(await page.locator('.tl-count').innerText(), /^[1-9]\d* matches$/);
  await context.close();
});

await test('paper shows the whole timeline', async () => {
  const {page, context} = await open(browser, join(folder, 'one.html'), {viewport: {width: 1280, height: 900}});
  const edges = () => page.evaluate(() => ['.tl-stick', '.tl-overlay', '.tl-base', '.tl-map'].map(selector => {
    const {left, right, bottom} = document.querySelector(selector).getBoundingClientRect();
    return {left, right, bottom};
  }));
  const before = await edges();
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({media: 'print'});
  for (const width of [794, 1123]) {  // A4, upright and across
    await page.setViewportSize({width, height: 900});
    const [stick, overlay, base, map] = await edges();
    assert.ok(stick.right <= width && stick.left >= 0, `${stick.right}`);
    for (const one of [overlay, base, map]) assert.ok(Math.abs(one.right - stick.right) < 1.5, `${one.right}, expected ${stick.right}`);
    for (const one of [overlay, base]) assert.ok(Math.abs(one.bottom - stick.bottom) < 1.5, `${one.bottom}, expected ${stick.bottom}`);
    assert.ok(Math.abs(map.left - base.left) < 1.5);
  }
  await page.emulateMedia({media: 'screen'});
  await page.setViewportSize({width: 1280, height: 900});
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  assert.deepEqual(await edges(), before);
  await context.close();
});

await test('paper shows all columns, and plots keep their shape', async () => {
  const width = 718;  // A4 with margins of 10 mm
  // Browsers do not tell observers about sizes on paper.
  const blindObservers = page => page.addInitScript(() => {
    let printing = false;
    addEventListener('beforeprint', () => (printing = true));
    const Observer = ResizeObserver;
    window.ResizeObserver = class extends Observer {
      constructor(callback) {
        super((...entries) => {
          if (!printing) callback(...entries);
        });
      }
    };
  });
  const sweep = structuredClone(sweepJson);
  for (const [field, value] of [['tp', 2], ['mbs', 1], ['gbs', 1024], ['seq', 4096], ['recompute', 'selective']]) {
    sweep.result.fields.push(field);
    sweep.result.points.forEach(point => (point[field] = value));
  }
  writeFileSync(join(folder, 'fields.json'), JSON.stringify(sweep));
  run('report', 'fields.json', '-o', 'fields.html', '--force');
  for (const file of ['one.html', 'plan.html', 'sweep.html', 'fields.html', 'explain.html']) {
    const {page, context} = await open(browser, join(folder, file), {}, blindObservers);
    await page.waitForTimeout(200);
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    await page.emulateMedia({media: 'print'});
    await page.setViewportSize({width, height: 900});
    await page.waitForTimeout(200);
    const {overflow, narrow, squeezed} = await page.evaluate(() => {
      const visible = [...document.querySelectorAll('table, th, td')].filter(element => element.checkVisibility());
      const label = element => `${element.closest('table').caption?.textContent}: ${element.textContent.slice(0, 60)}`;
      return {
        overflow: visible.filter(element => element.scrollWidth > element.clientWidth + 1 || element.getBoundingClientRect().right >
                                              element.closest('.scroll, .u-legend').getBoundingClientRect().right + 1).map(label),
        narrow: visible.filter(element => element.matches('td.text') && element.clientWidth < 90).map(label),
        squeezed: [...document.querySelectorAll('.plot canvas')].map(canvas => {
          const {width, height} = canvas.getBoundingClientRect();
          return canvas.width / canvas.height / (width / height);
        }).filter(ratio => Math.abs(ratio - 1) > 0.02)};
    });
    assert.deepEqual(overflow, [], file);
    assert.deepEqual(narrow, [], file);
    assert.deepEqual(squeezed, [], file);
    await context.close();
  }
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

for (const document of hostileDocuments({planJson, sweepJson, validateJson, studyJson, stragglersJson, goodputJson, energyJson})) {
  await test(`hostile names in documents are text: ${document.type ?? document.result.type ?? Object.keys(document.result)[0]}`, async () => {
    writeFileSync(join(folder, 'hostile.json'), JSON.stringify(document));
    run('report', 'hostile.json', '-o', 'hostile.html', '--force');
    const {page, problems, context} = await open(browser, join(folder, 'hostile.html'));
    await page.evaluate(() => document.querySelectorAll('details').forEach(element => (element.open = true)));
    await page.waitForTimeout(150);
    assert.deepEqual(problems, []);
    assert.equal(await page.evaluate(() => window.evil), undefined);
    assert.equal(await page.locator('script').count(), 2);
    assert.equal(await page.locator('img').count(), 0);
    const shown = await page.locator('main').textContent();
    for (const text of HOSTILE) assert.ok(shown.includes(text), text.slice(0, 80));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'overflow');
    await context.close();
  });
}

for (const [i, name] of HOSTILE.entries()) {
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

for (const file of ['one.html', 'several.html', ...Object.keys(documents)]) {
  await test(`axe finds nothing: ${file}, 1280 and 360 px`, async () => {
    const {page, context} = await open(browser, join(folder, file), {viewport: {width: 1280, height: 800}, colorScheme: 'light'});
    await checkAccess(page);
    await context.close();
  });
}

// ---- weir live

// Starts "weir live" and returns its address; null if weir was built without it.
async function serve(...args) {
  const child = spawn(weir, ['live', '-q', ...args], {cwd: folder, stdio: ['ignore', 'pipe', 'pipe']});
  const address = await new Promise(done => {
    let text = '';
    child.stdout.on('data', bytes => {
      text += bytes;
      if (text.includes('\n')) done(text.trim());
    });
    child.on('exit', () => done(null));
  });
  return {child, address};
}

const live = await serve(preset, '--schedule', '1f1b');
if (live.address === null) {
  console.log('skipped: weir live, which this weir was built without');
} else {
  const value = (page, key) => page.locator(`[data-live="${key}"]`).getAttribute('data-value').then(Number);
  await test('weir live estimates each change and then simulates it', async () => {
    const {page, problems, context} = await open(browser, live.address);
    await page.waitForSelector('[data-live="batch_seconds"]');
    const fast = (...args) => JSON.parse(runAnyway('simulate', preset, '--method', 'fast', '--format', 'json', ...args)).result;
    assert.equal(await value(page, 'batch_seconds'), fast('--schedule', '1f1b').batch_seconds);
    await page.waitForSelector('#timeline');
    assert.equal(Number(await page.locator('[data-json="batch_seconds"]').getAttribute('data-value')), oneJson.result.batch_seconds);
    const before = await value(page, 'batch_seconds');
    await page.getByLabel('Microbatches').focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight');
    const microbatches = 3 + oneJson.result.num_microbatches;
    await page.waitForFunction(old => Number(document.querySelector('[data-live="batch_seconds"]').dataset.value) > old * 1.1, before);
    const expected = fast('--schedule', '1f1b', '--microbatches', String(microbatches)).batch_seconds;
    await page.waitForFunction(seconds => Number(document.querySelector('[data-live="batch_seconds"]').dataset.value) === seconds, expected);
    // The full simulation equals the estimate.
    await page.waitForFunction(seconds => Math.abs(Number(document.querySelector('[data-json="batch_seconds"]').dataset.value) / seconds - 1) < 1e-9,
                               expected, {timeout: 60000});
    await page.getByLabel('Schedule').selectOption('gpipe');
    await page.waitForFunction(() => document.querySelector('#live td, #live tbody th')?.textContent.includes('gpipe'));
    await page.getByLabel('Copy CSV: the estimates').click();
    assert.ok((await page.evaluate(() => window.weirLastCsv)).split('\n').length > 4);
    assert.deepEqual(problems, []);
    await context.close();
  });
  await test('weir live says why settings cannot run', async () => {
    const {page, context} = await open(browser, live.address);
    await page.waitForSelector('#timeline');
    await page.getByLabel('Chunks per rank').focus();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => document.querySelector('.live-status').textContent.includes('Cannot run'));
    // The report is that of earlier settings until there is a new one.
    const settings = '1f1b, 8 ranks, 8 microbatches', outdated = page.locator('#live > .warnings');
    assert.equal(await page.locator('.verdict', {hasText: 'Report of'}).innerText(), `Report of ${settings}`);
    assert.equal(await outdated.innerText(), `The report below is that of the last settings that could run: ${settings}.`);
    await page.keyboard.press('ArrowLeft');
    await outdated.waitFor({state: 'hidden'});
    await context.close();
  });
  await test('axe finds nothing: weir live, 1280 and 360 px', async () => {
    const {page, context} = await open(browser, live.address, {viewport: {width: 1280, height: 800}, colorScheme: 'light'});
    await page.waitForSelector('#timeline');
    await checkAccess(page);
    await context.close();
  });
  await test('Ctrl-C ends weir live', async () => {
    const ended = new Promise(done => live.child.on('exit', done));
    live.child.kill('SIGINT');
    assert.equal(await ended, 130);
  });
}

await browser.close();
process.exit(failed > 0 ? 1 : 0);
