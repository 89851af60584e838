// SPDX-License-Identifier: Apache-2.0
// Names that must appear as text, and documents that contain them everywhere.
export const HOSTILE = ['</script><script>window.evil = 1</script>', '"\'><img src=x onerror="window.evil=2">',
                        '\u{1F680} \u202Egnp.exe \u05E9\u05DC\u05D5\u05DD', `${'x'.repeat(10000)}`, '{{constructor}} <!-- -->'];

// Copies of the rows, so that each name is in every column.
function rowsFor(rows) {
  return Array.from({length: Math.max(rows.length, HOSTILE.length)}, (_, i) => structuredClone(rows[i % rows.length]));
}
const nameAt = i => HOSTILE[i % HOSTILE.length];

// Documents of plans, sweeps, validations, train-study, stragglers, goodput and energy. Every column of text has all of the names, one per row;
// texts that occur once have all of them one after the other.
export function hostileDocuments({planJson, sweepJson, validateJson, studyJson, stragglersJson, goodputJson, energyJson}) {
  const all = HOSTILE.join(' ');
  const plan = structuredClone(planJson);
  plan.command = all;
  plan.warnings = [...HOSTILE];
  plan.result.plans = rowsFor(plan.result.plans);
  plan.result.plans.forEach((one, i) => Object.assign(one, {schedule: nameAt(i), why_not_best: nameAt(i), layers: nameAt(i), recompute: nameAt(i),
                                                             source: nameAt(i)}));
  for (const text of HOSTILE) {
    plan.result.neighbors.push({choice: text, batch_seconds: 1, peak_memory_bytes: 1, fits: false, difference: text});
  }
  const sweep = structuredClone(sweepJson);
  for (const text of HOSTILE) {
    sweep.result.fields.push(text);
    sweep.result.points.forEach((point, at) => (point[text] = `${text}${at % 2}`));
  }
  const validation = structuredClone(validateJson);
  validation.result.numbers = rowsFor(validation.result.numbers);
  validation.result.numbers.forEach((number, i) => Object.assign(number, {run: nameAt(i), quantity: nameAt(i)}));
  validation.result.statistics = rowsFor(validation.result.statistics);
  validation.result.statistics.forEach((one, i) => (one.quantity = nameAt(i)));
  validation.result.runs = rowsFor(validation.result.runs);
  validation.result.runs.forEach((one, at) => HOSTILE.forEach(text => (one.fields[text] = `${text}${at % 2}`)));
  const study = structuredClone(studyJson);
  study.result.schedules = rowsFor(study.result.schedules);
  study.result.schedules.forEach((one, i) => Object.assign(one, {schedule: nameAt(i), semantics: nameAt(i)}));
  const stragglers = structuredClone(stragglersJson);
  Object.assign(stragglers.result, {suspect: all, slow_flag: all, format: all});
  for (const key of ['by_kind', 'by_stage', 'by_replica']) {
    stragglers.result[key] = rowsFor(stragglers.result[key]);
    stragglers.result[key].forEach((one, i) => (one.name = nameAt(i)));
  }
  const goodput = structuredClone(goodputJson);
  for (const key of ['failures', 'investments']) goodput.result[key] = rowsFor(goodput.result[key]);
  goodput.result.failures.forEach((one, i) => (one.name = nameAt(i)));
  goodput.result.investments.forEach((one, i) => Object.assign(one, {what: nameAt(i), change: nameAt(i)}));
  const energy = structuredClone(energyJson);
  energy.result.clocks = rowsFor(energy.result.clocks);
  energy.result.clocks.forEach((one, i) => Object.assign(one, {plan: nameAt(i), operation: nameAt(i)}));
  return [plan, sweep, validation, study, stragglers, goodput, energy];
}

// A scenario with such a name.
export function hostileScenario(name, scenario) {
  const escaped = [...Buffer.from(name)].map(byte => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  return `name: "${escaped}"\n${scenario.replace(/^name: .*$/m, '')}`;
}
