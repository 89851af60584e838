// SPDX-License-Identifier: Apache-2.0
// The plans of a search: the front of time, memory and cost, their layouts, and
// why each one loses.
import {bars} from './bars.ts';
import {chart, csvButton, csvOfTable, details, h, name, scrollable, select, table, type TableCell} from './dom.ts';
import {formatBytes, formatCount, formatPercent, formatSeconds} from './format.ts';
import type {Plan, PlanSection} from './model.ts';
import {parallelCoordinates} from './parallel.ts';
import {Scatter, type ScatterAxis, seriesLegend} from './scatter.ts';

interface Goal {
  label: string;
  axis: ScatterAxis;
  of: (plan: Plan) => number | null;
  interval?: (plan: Plan) => [low: number | null, high: number | null];
}

const formatPrice = (price: number) => price.toPrecision(3);

const GOALS: Goal[] = [
  {label: 'step time', axis: {label: 'step time', format: formatSeconds}, of: plan => plan.batch_seconds,
   interval: plan => [plan.batch_seconds_low, plan.batch_seconds_high]},
  {label: 'time per sample', axis: {label: 'time per sample', format: formatSeconds},
   of: plan => (plan.samples_per_second > 0 ? 1 / plan.samples_per_second : null)},
  {label: 'peak memory', axis: {label: 'peak memory', format: formatBytes, bytes: true}, of: plan => plan.peak_memory_bytes,
   interval: plan => [plan.peak_memory_bytes_low ?? null, plan.peak_memory_bytes_high ?? null]},
  // One sample may cost a few millionths.
  {label: 'price per million samples', axis: {label: 'price per million samples', format: formatPrice},
   of: plan => (plan.price_per_sample === null ? null : 1e6 * plan.price_per_sample)},
  {label: 'GPUs', axis: {label: 'GPUs', format: String}, of: plan => plan.num_gpus},
];

const seconds = (value: number) => ({text: formatSeconds(value), value});
const bytes = (value: number) => ({text: formatBytes(value), value});
const count = (value: number) => ({text: String(value), value});

function layoutText(plan: Plan): string {
  const parts = [`tp ${plan.tensor}`, `pp ${plan.pipeline}`, `dp ${plan.data}`];
  if ((plan.context ?? 1) > 1) parts.push(`cp ${plan.context}`);
  if ((plan.expert ?? 1) > 1) parts.push(`ep ${plan.expert}`);
  if (plan.expert_tensor !== undefined && plan.expert_tensor !== plan.tensor) parts.push(`etp ${plan.expert_tensor}`);
  if ((plan.data_replicate ?? 1) > 1) parts.push(`replicas of shards ${plan.data_replicate}`);
  if (plan.chunks > 1) parts.push(`chunks ${plan.chunks}`);
  return `${plan.schedule}, ${parts.join(', ')}, microbatch ${plan.microbatch_size}`;
}

// Plans that no other one beats in both goals, by x. Points with equal values
// are all on the front.
export function front(points: {x: number; y: number}[]): number[] {
  return points.map((_, i) => i)
    .filter(i => !points.some(({x, y}) => x <= points[i].x && y <= points[i].y && (x < points[i].x || y < points[i].y)))
    .sort((a, b) => points[a].x - points[b].x || points[a].y - points[b].y);
}

function intervalOf(goal: Goal, plan: Plan): [low: number, high: number] | null {
  const [low, high] = goal.interval?.(plan) ?? [null, null];
  return low === null || high === null ? null : [low, high];
}

// Whether plans are close together compared with their intervals.
function intervalsHidePoints(goal: Goal, plans: Plan[]): boolean {
  const range = (values: number[]) => Math.max(...values) - Math.min(...values);
  const points = plans.map(goal.of).filter(value => value !== null);
  const ends = plans.flatMap(plan => intervalOf(goal, plan) ?? []);
  return points.length > 1 && range([...points, ...ends]) > 4 * range(points);
}

function frontChart(plans: Plan[], schedules: string[]): HTMLElement {
  const goals = GOALS.filter(goal => plans.some(plan => goal.of(plan) !== null));
  let x = 0, y = goals.findIndex(goal => goal.label === 'peak memory');
  const hasIntervals = plans.some(plan => goals.some(goal => intervalOf(goal, plan) !== null));
  const hidden = hasIntervals && [x, y].some(goal => intervalsHidePoints(goals[goal], plans));
  const withIntervals = h('input', {type: 'checkbox', checked: !hidden});
  const scatter = new Scatter();
  const note = h('p', {class: 'note'});
  let cells: TableCell[][] = [];
  const box = details('Table');
  const columns = () => [{label: 'Plan', left: true}, {label: goals[x].label}, {label: goals[y].label}, {label: 'On the front'}];
  const show = () => {
    const known = plans.map((plan, i) => ({i, x: goals[x].of(plan), y: goals[y].of(plan)}))
      .filter(one => one.x !== null && one.y !== null) as {i: number; x: number; y: number}[];
    const best = front(known);
    const onFront = new Set(best.map(i => known[i].i));
    cells = known.map(one => [{text: `${one.i + 1}: ${layoutText(plans[one.i])}`, value: one.i},
      {text: goals[x].axis.format(one.x), value: one.x}, {text: goals[y].axis.format(one.y), value: one.y},
      onFront.has(one.i) ? 'yes' : 'no']);
    while (box.children.length > 1) box.lastChild!.remove();
    box.append(table('Goals of each plan', columns(), cells));
    note.textContent = `Plans on the line are not beaten by another one in both; ${best.length} of ${known.length}.`;
    const intervals = (plan: Plan) => {
      if (!withIntervals.checked) return {};
      const across = intervalOf(goals[x], plan), up = intervalOf(goals[y], plan);
      return {lowX: across?.[0], highX: across?.[1], low: up?.[0], high: up?.[1]};
    };
    scatter.show({
      label: `${goals[y].label} over ${goals[x].label} of each plan`, series: schedules, x: goals[x].axis, y: goals[y].axis,
      points: known.map(one => ({...one, ...intervals(plans[one.i]),
                                 series: schedules.indexOf(plans[one.i].schedule), large: one.i === 0,
                                 text: `Plan ${one.i + 1}: ${layoutText(plans[one.i])}; ${goals[x].axis.format(one.x)}, ${goals[y].axis.format(one.y)}`})),
      lines: [{points: best.map(i => [known[i].x, known[i].y])}],
    });
  };
  show();
  withIntervals.addEventListener('change', show);
  const names = goals.map(goal => goal.label);
  const about = ['The first plan is large.'];
  if (hasIntervals) about.push('Thin lines are intervals that hold in 9 of 10 cases.');
  if (hidden) about.push('They are not shown at first, as they are much wider than the differences between the plans.');
  return chart('Pareto front', about.join(' '),
               csvButton('the goals of each plan', () => csvOfTable(columns(), cells)),
               h('div', {class: 'controls'}, select('Across', names, x, i => { x = i; show(); }),
                 select('Up', names, y, i => { y = i; show(); }),
                 hasIntervals ? h('label', {class: 'choice'}, withIntervals, ' intervals') : null),
               note, scatter.element, seriesLegend(schedules), box);
}

function layoutsChart(plans: Plan[], schedules: string[]): HTMLElement {
  const fields: [label: string, of: (plan: Plan) => number | string | null][] = [
    ['schedule', plan => plan.schedule], ['tensor', plan => plan.tensor], ['pipeline', plan => plan.pipeline],
    ['data', plan => plan.data], ['context', plan => plan.context ?? 1], ['expert', plan => plan.expert ?? 1],
    ['expert tensor', plan => plan.expert_tensor ?? null], ['replicas of shards', plan => plan.data_replicate ?? null],
    ['chunks', plan => plan.chunks], ['microbatch', plan => plan.microbatch_size],
    ['recompute', plan => plan.recompute ?? null], ['sharding', plan => plan.sharding ?? null], ['layers', plan => plan.layers],
    ['order', plan => plan.order ?? null]];
  const varying = fields.filter(([label, of]) =>
    ['schedule', 'tensor', 'pipeline', 'data'].includes(label) || new Set(plans.map(of)).size > 1);
  const dimensions = [...varying.map(([label, of]) => ({label, values: plans.map(of)})),
                      {label: 'step time', values: plans.map(plan => plan.batch_seconds), format: formatSeconds},
                      {label: 'peak memory', values: plans.map(plan => plan.peak_memory_bytes), format: formatBytes}];
  const columns = [{label: 'Plan', left: true}, ...fields.map(([label]) => ({label})), {label: 'GPUs'}, {label: 'Step time'},
                   {label: 'Samples/s'}, {label: 'Peak memory'}, {label: 'Lower bound'}, {label: 'Above bound'}, {label: 'Source', left: true}];
  const cells: TableCell[][] = plans.map((plan, i) => [
    count(i + 1), ...fields.map(([, of]) => {
      const value = of(plan);
      return typeof value === 'number' ? count(value) : value ?? '-';
    }), count(plan.num_gpus), seconds(plan.batch_seconds), {text: formatCount(plan.samples_per_second), value: plan.samples_per_second},
    bytes(plan.peak_memory_bytes), seconds(plan.lower_bound_seconds), {text: formatPercent(plan.gap), value: plan.gap}, plan.source]);
  return chart('Layouts', 'Each line is a plan; the first one is thick.', csvButton('the layouts', () => csvOfTable(columns, cells)),
               parallelCoordinates('Layouts of all plans', dimensions, plans.map(plan => schedules.indexOf(plan.schedule)),
                                   plans.map((plan, i) => `Plan ${i + 1}: ${layoutText(plan)}`), plans.map((_, i) => i === 0)),
               seriesLegend(schedules), table('All plans, best first', columns, cells));
}

function lossesChart(plans: Plan[]): HTMLElement {
  const columns = [{label: 'Plan', left: true}, {label: 'Layout', left: true}, {label: 'Why it is not the best', left: true}];
  const cells: TableCell[][] = plans.map((plan, i) =>
    [count(i + 1), layoutText(plan), plan.why_not_best || (i === 0 ? 'the best plan' : 'equally good')]);
  const same = plans.flatMap((plan, i) => (plan.equal_to ?? []).map(text => `plan ${i + 1}: ${text}`));
  return chart('Why each plan loses', 'The parts that differ most on the busiest GPU, and differences in memory.',
               csvButton('why each plan loses', () => csvOfTable(columns, cells)),
               table('Why each plan is not the best', columns, cells),
               same.length === 0 ? null : details('Plans with the same time and memory', h('ul', {}, ...same.map(text => h('li', {}, name(text))))));
}

function neighborsChart(section: PlanSection): HTMLElement | null {
  const {neighbors, plans, memory_limit_bytes} = section.result;
  if (neighbors.length === 0 || plans.length === 0) return null;
  const best = plans[0].batch_seconds;
  const columns = [{label: 'Choice', left: true}, {label: 'Step time'}, {label: 'Against the best'}, {label: 'Peak memory'},
                   {label: 'Fits'}, {label: 'Difference', left: true}];
  const cells: TableCell[][] = neighbors.map(one => [
    one.choice, one.batch_seconds === null ? {text: '-', value: null} : seconds(one.batch_seconds),
    one.batch_seconds === null ? {text: '-', value: null} : {text: formatPercent(one.batch_seconds / best - 1), value: one.batch_seconds / best - 1},
    bytes(one.peak_memory_bytes), one.fits ? 'yes' : 'no', one.difference]);
  const known = neighbors.filter(one => one.batch_seconds !== null);
  return chart('One choice changed', `Plans that differ from the first one in one choice. A plan may use ${formatBytes(memory_limit_bytes)} per GPU.`,
               csvButton('one choice changed', () => csvOfTable(columns, cells)),
               bars('Step time with one choice changed', known.map(one => ({
                 label: one.choice, text: formatSeconds(one.batch_seconds!),
                 parts: [{label: one.difference, color: one.fits ? '#56B4E9' : '#999999', value: one.batch_seconds!,
                          text: `${formatSeconds(one.batch_seconds!)}${one.fits ? '' : ', does not fit'}`}],
               })), {value: best, text: `the first plan, ${formatSeconds(best)}`}),
               h('p', {class: 'note'}, 'Gray: does not fit in memory.'),
               table('Plans with one choice changed', columns, cells));
}

const ENDS: Record<string, string> = {
  complete: 'no candidate left can be better',
  gap: 'no candidate left can be better by more than the gap',
  patience: 'many simulated candidates in a row were not better',
  'time-limit': 'the time limit was reached',
  interrupt: 'it was interrupted',
};

function searchChart(section: PlanSection): HTMLElement {
  const {counts, end, lower_bound_seconds, proven_seconds} = section.result;
  const fates: [label: string, value: number, why: string][] = [
    ['simulated', counts.ranked, 'their time was simulated'],
    ['pruned by a bound', counts.pruned_time, 'a lower bound on their time is above the best time'],
    ['pruned by memory', counts.pruned_memory, 'they cannot fit'],
    ['duplicates', counts.duplicates, 'the same order as another candidate'],
    ['invalid', counts.invalid, 'refused by a schedule or the model'],
    ['left', counts.left, 'not examined, as the search ended before']];
  const columns = [{label: 'Candidates', left: true}, {label: 'Number'}, {label: 'Meaning', left: true}];
  const cells: TableCell[][] = fates.map(([label, value, why]) => [label, count(value), why]);
  const bound = [`lower bound on the time of any order: ${formatSeconds(lower_bound_seconds)}`];
  if (typeof proven_seconds === 'number') bound.push(`no candidate is faster than ${formatSeconds(proven_seconds)}`);
  return chart('Search', `${counts.candidates} candidates. The search ended: ${ENDS[end] ?? end}; ${bound.join('; ')}.`,
               csvButton('the candidates', () => csvOfTable(columns, cells)),
               bars('Candidates by what happened to them', fates.map(([label, value, why]) => ({
                 label, text: String(value), parts: [{label: why, color: '#56B4E9', value, text: String(value)}]}))),
               details('Table', table('Candidates', columns, cells)));
}

export function planView(section: PlanSection): HTMLElement {
  const {plans} = section.result;
  const root = h('section', {id: 'plan'}, h('h2', {}, 'Plans'));
  if (plans.length === 0) {
    root.append(h('p', {class: 'verdict'}, 'No plan was found.'), searchChart(section));
    return root;
  }
  const schedules = [...new Set(plans.map(plan => plan.schedule))];
  const best = plans[0];
  root.append(
    h('p', {class: 'verdict'}, 'Best: ', name(layoutText(best)), `: ${formatSeconds(best.batch_seconds)} per step, ${formatBytes(best.peak_memory_bytes)}`),
    frontChart(plans, schedules), layoutsChart(plans, schedules), lossesChart(plans));
  const neighbors = neighborsChart(section);
  if (neighbors) root.append(neighbors);
  root.append(searchChart(section), details('Scenario of the first plan', scrollable(h('pre', {}, best.scenario), 'Scenario of the first plan')));
  return root;
}
