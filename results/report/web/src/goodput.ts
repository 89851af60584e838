// SPDX-License-Identifier: Apache-2.0
// A run with failures: where its time goes, and how often to write checkpoints.
import {bars} from './bars.ts';
import {cards, chart, csvButton, csvOfTable, details, h, table, type TableCell} from './dom.ts';
import {formatCount, formatDuration, formatPercent} from './format.ts';
import type {GoodputSection} from './model.ts';
import {Scatter, seriesLegend} from './scatter.ts';

type Result = GoodputSection['result'];

const duration = (value: number) => ({text: formatDuration(value), value});
const percent = (value: number) => `${(100 * value).toFixed(2)} %`;
const part = (value: number) => ({text: percent(value), value});
const range = (of: {low: number; high: number}, format: (value: number) => string) => `${format(of.low)} to ${format(of.high)} in 9 of 10 runs`;

const SHARES: [key: keyof Result['shares'], label: string, color: string][] = [
  ['training', 'training', '#009E73'], ['checkpoint_stalls', 'checkpoint stalls', '#E69F00'], ['lost_work', 'lost work', '#D55E00'],
  ['recovery', 'detection, restart, load', '#CC79A7'], ['waiting', 'waiting for repairs', '#0072B2'],
  ['fewer_replicas', 'fewer replicas', '#56B4E9']];

function sharesChart({shares, wall_seconds}: Result): HTMLElement {
  const columns = [{label: 'Part of the time', left: true}, {label: 'Share'}, {label: 'Time'}];
  const rows = SHARES.map(([key, label, color]) => ({label, color, value: shares[key]}));
  const cells: TableCell[][] = rows.map(({label, value}) => [label, part(value), duration(value * wall_seconds.mean)]);
  const lost = rows.slice(1).filter(row => row.value > 0);
  return chart('Lost time', `Means over the simulated runs. ${percent(shares.training)} of the time is training; the bars show the rest.`,
               csvButton('the parts of the time', () => csvOfTable(columns, cells)),
               lost.length === 0 ? h('p', {class: 'note'}, 'No time is lost.') : bars('Time that is not training, by cause', lost.map(({label, color, value}) => ({
                 label, text: `${percent(value)}, ${formatDuration(value * wall_seconds.mean)}`,
                 parts: [{label, color, value, text: percent(value)}]})), undefined, true),
               table('Parts of the time', columns, cells));
}

function intervalChart(result: Result): HTMLElement | null {
  const tried = result.tried_intervals;
  if (tried.length < 2) return null;
  const lost = tried.map(one => 1 - one.goodput), chosen = 1 - result.goodput;
  const low = Math.min(...lost, chosen), high = Math.max(...lost, chosen);
  const forms: [label: string, seconds: number][] = [['Young', result.young_interval_seconds], ['Daly', result.daly_interval_seconds], ['exact', result.exact_interval_seconds]];
  const shown = forms.filter(([, seconds]) => seconds > 0 && Number.isFinite(seconds));
  const scatter = new Scatter();
  // Ticks are round in this unit.
  const longest = tried.reduce((most, one) => Math.max(most, one.interval_seconds), 0);
  const [unit, unitName] = longest < 120 ? [1, 's'] : longest < 7200 ? [60, 'min'] : longest < 172800 ? [3600, 'h'] : [86400, 'days'];
  scatter.show({
    label: 'Lost time by checkpoint interval', series: ['tried', 'chosen'],
    x: {label: 'time between checkpoints', format: value => `${Number(value.toPrecision(3))} ${unitName}`, log: true}, y: {label: 'lost time', format: percent},
    points: [...tried.map((one, i) => ({x: one.interval_seconds / unit, y: lost[i], series: 0,
                                        text: `Every ${formatCount(one.interval_steps)} steps, ${formatDuration(one.interval_seconds)}: ${percent(lost[i])} lost`})),
             {x: result.interval_seconds / unit, y: chosen, series: 1, large: true,
              text: `Chosen: every ${formatCount(result.interval_steps)} steps, ${formatDuration(result.interval_seconds)}: ${percent(chosen)} lost`}],
    lines: shown.map(([, seconds]) => ({points: [[seconds / unit, low], [seconds / unit, high]], dash: true})),
  });
  const columns = [{label: 'Steps between checkpoints', left: true}, {label: 'Time between checkpoints'}, {label: 'Wall time'}, {label: 'Goodput'}];
  const cells: TableCell[][] = tried.map(one => [{text: formatCount(one.interval_steps), value: one.interval_steps}, duration(one.interval_seconds),
    duration(one.wall_seconds), part(one.goodput)]);
  const flat = result.flat_interval_steps.length === 2 ? ` From ${formatCount(result.flat_interval_steps[0])} to ${formatCount(result.flat_interval_steps[1])} steps, the time is within 0.1 % of the best.` : '';
  return chart('Checkpoint interval',
               `The search simulates fewer runs than the estimate of the chosen interval.${flat} Dashed: ${shown.map(([label, seconds]) => `${label}, ${formatDuration(seconds)}`).join('; ')}.`,
               csvButton('the checkpoint intervals', () => csvOfTable(columns, cells)), scatter.element, seriesLegend(['tried', 'chosen']),
               details('Table', table('Checkpoint intervals', columns, cells)));
}

function failuresChart(result: Result): HTMLElement | null {
  if (result.failures.length === 0) return null;
  const rate = result.failures.reduce((sum, one) => sum + 1 / one.mean_seconds_between, 0);
  const rows = result.failures.map(one => ({...one, share: 1 / one.mean_seconds_between / rate}));
  const columns = [{label: 'Failures of', left: true}, {label: 'Mean time between'}, {label: 'Share'}];
  const cells: TableCell[][] = rows.map(row => [row.name, duration(row.mean_seconds_between), part(row.share)]);
  return chart('Failures', `A failure every ${formatDuration(result.mean_seconds_between_failures)} on average.`,
               csvButton('the failures', () => csvOfTable(columns, cells)),
               bars('Share of the failures', rows.map(row => ({
                 label: row.name, text: formatPercent(row.share), parts: [{label: row.name, color: '#D55E00', value: row.share, text: formatPercent(row.share)}]}))),
               details('Table', table('Failures by component', columns, cells)));
}

function investmentsChart(result: Result): HTMLElement | null {
  const all = result.investments;
  if (all.length === 0) return null;
  const saved = (seconds: number) => seconds / result.wall_seconds.mean;
  const columns = [{label: 'Investment', left: true}, {label: 'Change', left: true}, {label: 'Saved'}, {label: 'Saved time'}, {label: 'Elasticity'}, {label: 'Standard error'}];
  const number = (value: number | undefined) => (value === undefined ? '-' : {text: String(Number(value.toPrecision(2))), value});
  const cells: TableCell[][] = all.map(one => [one.what, one.change, part(saved(one.saved_seconds)), duration(one.saved_seconds),
    number(one.elasticity), number(one.elasticity_standard_error)]);
  return chart('Investments', 'The part of the wall time that one improvement saves.', csvButton('the investments', () => csvOfTable(columns, cells)),
               bars('Saved part of the wall time', all.filter(one => one.saved_seconds > 0).map(one => ({
                 label: `${one.what}: ${one.change}`, text: percent(saved(one.saved_seconds)),
                 parts: [{label: one.what, color: '#009E73', value: one.saved_seconds, text: percent(saved(one.saved_seconds))}]})), undefined, true),
               table('Investments', columns, cells));
}

export function goodputView(section: GoodputSection): HTMLElement {
  const {result} = section;
  const days = (value: number) => String(Number(value.toPrecision(4)));
  const shown: [string, string, string][] = [
    ['Goodput', percent(result.goodput), result.daly_goodput === undefined ? '' : `${percent(result.daly_goodput)} by Daly's formula`],
    ['Days', days(result.days.mean), range(result.days, days)],
    ['Failures', days(result.num_failures.mean), range(result.num_failures, days)],
    ['Checkpoint every', formatDuration(result.interval_seconds), `${formatCount(result.interval_steps)} steps`],
    ['Checkpoint stall', formatDuration(result.checkpoint_stall_seconds), `safe after ${formatDuration(result.checkpoint_safe_seconds)}, load ${formatDuration(result.checkpoint_load_seconds)}`],
    ['Lost per failure', formatDuration(result.mean_loss_seconds), `mean, with stalls and recovery; work lost at most ${formatDuration(result.most_lost_seconds)}`]];
  if (result.cost) shown.splice(2, 0, ['Cost', formatCount(result.cost.mean), range(result.cost, formatCount)]);
  const root = h('section', {id: 'goodput'}, h('h2', {}, 'Goodput'), cards(shown));
  if (result.target_goodput !== undefined && result.largest_loss_seconds !== undefined) {
    root.append(h('p', {class: 'verdict'}, `A goodput of ${percent(result.target_goodput)} allows ${formatDuration(result.largest_loss_seconds)} lost per failure.`));
  }
  for (const one of [sharesChart(result), intervalChart(result), failuresChart(result), investmentsChart(result)]) if (one) root.append(one);
  return root;
}
