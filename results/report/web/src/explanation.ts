// SPDX-License-Identifier: Apache-2.0
// The parameters that drive a prediction, and the components of its interval.
import {bars} from './bars.ts';
import {chart, csvButton, csvOfTable, details, h, legend, table, type TableCell} from './dom.ts';
import {formatNumber, formatPercent, formatSeconds} from './format.ts';
import type {ExplanationSection} from './model.ts';

// By the kinds of calibrate/profile/figure.proto.
const KIND_COLORS: Record<string, string> = {
  measured: '#117733', interpolated: '#44AA99', fitted: '#56B4E9', datasheet: '#DDCC77', assumed: '#CC6677', given: '#999999'};
const colorOf = (kind: string) => KIND_COLORS[kind.toLowerCase()] ?? '#AA4499';

const UNCERTAINTY_TEXTS: Record<string, string> = {
  figures: 'parameters', kernels: 'individual kernels', collectives: 'individual collectives', step: 'whole step',
  unrecorded: 'no measured step of this kind', slower_step: 'whole step, upper limit only', faster_step: 'whole step, lower limit only'};
const NINE_OF_TEN = 1.6449;  // standard deviations on both sides

const MOST_BARS = 20;

function parametersChart(section: ExplanationSection): HTMLElement | null {
  const {parameters, batch_seconds, num_parameters_without_influence} = section.result;
  if (parameters.length === 0) return null;
  const sorted = [...parameters].sort((a, b) => Math.abs(b.elasticity) - Math.abs(a.elasticity));
  const kinds = [...new Set(sorted.map(one => one.kind))];
  const columns = [{label: 'Parameter', left: true}, {label: 'Fraction'}, {label: 'Elasticity'}, {label: '1 % more'}, {label: 'Value'},
                   {label: 'Kind', left: true}, {label: 'Of', left: true}, {label: 'Source', left: true}];
  const change = (elasticity: number) => batch_seconds * (1.01 ** elasticity - 1);
  const cells: TableCell[][] = sorted.map(one => [one.path, {text: formatPercent(Math.abs(one.elasticity)), value: Math.abs(one.elasticity)},
    {text: String(Number(one.elasticity.toPrecision(3))), value: one.elasticity},
    {text: `${one.elasticity > 0 ? '+' : '\u2212'}${formatSeconds(Math.abs(change(one.elasticity)))}`, value: change(one.elasticity)},
    {text: formatNumber(one.value), value: one.value}, one.kind, one.owner, one.source]);
  const rest = num_parameters_without_influence === undefined ? '' : ` ${num_parameters_without_influence} others have no influence.`;
  return chart('Sensitivities', `The fraction of the step time that follows a parameter: its elasticity without sign.${rest}`,
               csvButton('sensitivities', () => csvOfTable(columns, cells)),
               bars('Fraction of the step time that follows each parameter', sorted.slice(0, MOST_BARS).map(one => ({
                 label: one.path, text: formatPercent(Math.abs(one.elasticity)),
                 parts: [{label: `${one.path} of ${one.owner}, ${one.kind}`, color: colorOf(one.kind), value: Math.abs(one.elasticity),
                          text: formatPercent(Math.abs(one.elasticity))}]})), undefined, true),
               legend(kinds.map(kind => [kind, colorOf(kind)])), table('Sensitivities of all parameters', columns, cells));
}

function intervalChart(section: ExplanationSection): HTMLElement | null {
  const {uncertainty, batch_seconds, batch_seconds_low, batch_seconds_high, measured} = section.result;
  if (!uncertainty) return null;
  const known = Object.entries(uncertainty).filter((one): one is [string, number] => typeof one[1] === 'number' && one[1] > 0);
  if (known.length === 0) return null;
  const rows = known.map(([key, deviation]) => ({
    text: UNCERTAINTY_TEXTS[key] ?? key.replaceAll('_', ' '), deviation,
    low: key === 'slower_step' ? batch_seconds : batch_seconds * Math.exp(-NINE_OF_TEN * deviation),
    high: key === 'faster_step' ? batch_seconds : batch_seconds * Math.exp(NINE_OF_TEN * deviation)}));
  if (batch_seconds_low !== undefined && batch_seconds_high !== undefined) {
    rows.push({text: 'all together', deviation: NaN, low: batch_seconds_low, high: batch_seconds_high});
  }
  const columns = [{label: 'Source of error', left: true}, {label: 'Standard deviation'}, {label: 'Low'}, {label: 'High'}];
  const cells: TableCell[][] = rows.map(row => [row.text, Number.isFinite(row.deviation) ? {text: formatPercent(row.deviation), value: row.deviation} : '-',
    {text: formatSeconds(row.low), value: row.low}, {text: formatSeconds(row.high), value: row.high}]);
  const lows = rows.reduce((a, row) => Math.min(a, row.low), Infinity);
  const least = measured && measured.seconds > lows / 2 ? Math.min(lows, measured.seconds) : lows;
  // Bars begin near the lowest limit: differences are small against the step.
  const origin = Math.max(0, least - 0.1 * (batch_seconds - least));
  const most = rows.reduce((a, row) => Math.max(a, row.high), 0);
  // A line far away from all bars would make them too small to see.
  const limit = measured && measured.seconds - origin < 3 * (most - origin) ? {value: measured.seconds - origin, text: `measured, ${formatSeconds(measured.seconds)}`}
    : {value: batch_seconds - origin, text: `predicted, ${formatSeconds(batch_seconds)}`};
  return chart('Interval by source of error',
               `Each bar is the interval of 9 in 10 cases if that source were the only one. Bars begin at ${formatSeconds(origin)}.`,
               csvButton('the interval by source of error', () => csvOfTable(columns, cells)),
               bars('Interval of the step time by source of error', rows.map(row => ({
                 label: row.text, text: `${formatSeconds(row.low)} \u2013 ${formatSeconds(row.high)}`, begin: row.low - origin,
                 parts: [{label: row.text, color: row.text === 'all together' ? '#E69F00' : '#56B4E9', value: row.high - row.low,
                          text: `${formatSeconds(row.low)} to ${formatSeconds(row.high)}`}]})), limit, true),
               details('Table', table('Interval by source of error', columns, cells)));
}

function kindsChart(section: ExplanationSection): HTMLElement | null {
  const kinds = Object.entries(section.result.parts_by_kind).sort((a, b) => b[1] - a[1]);
  if (kinds.length === 0) return null;
  const columns = [{label: 'Kind of parameter', left: true}, {label: 'Fraction of the step time'}];
  const cells: TableCell[][] = kinds.map(([kind, part]) => [kind, {text: formatPercent(part), value: part}]);
  return chart('Evidence', 'How the parameters are known that the step time follows. Of parameters that multiply each other, each counts in full.', csvButton('the step time by kind of parameter', () => csvOfTable(columns, cells)),
               bars('Fraction of the step time by kind of parameter', kinds.map(([kind, part]) => ({
                 label: kind, text: formatPercent(part), parts: [{label: kind, color: colorOf(kind), value: Math.abs(part), text: formatPercent(part)}]}))),
               details('Table', table('Fraction by kind of parameter', columns, cells)));
}

export function explanationView(section: ExplanationSection): HTMLElement {
  const {result} = section;
  const interval = result.batch_seconds_low !== undefined && result.batch_seconds_high !== undefined
    ? `, ${formatSeconds(result.batch_seconds_low)} to ${formatSeconds(result.batch_seconds_high)} in 9 of 10 cases` : '';
  const root = h('section', {id: 'explanation'}, h('h2', {}, 'What drives the prediction'),
    h('p', {class: 'verdict'}, `Step time ${formatSeconds(result.batch_seconds)}${interval}${result.measured ? `; measured ${formatSeconds(result.measured.seconds)}` : ''}`));
  for (const one of [parametersChart(section), intervalChart(section), kindsChart(section)]) if (one) root.append(one);
  return root;
}
