// SPDX-License-Identifier: Apache-2.0
// Predictions against measurements, and their errors by the settings of runs.
import {chart, csvButton, csvOfTable, details, h, select, table, type TableCell} from './dom.ts';
import {formatBytes, formatCount, formatPercent, formatSeconds} from './format.ts';
import {passText} from './kinds.ts';
import type {ComparedNumber, ExecutionSection, ValidationSection} from './model.ts';
import {Scatter, type ScatterPoint, seriesLegend} from './scatter.ts';

type Format = (value: number) => string;

function formatOf(quantity: string): Format {
  if (/bytes|memory|gib|mib/.test(quantity)) return /bytes/.test(quantity) ? formatBytes : formatCount;
  if (/seconds|step_time/.test(quantity)) return formatSeconds;
  return value => Number(value.toPrecision(3)).toString();
}

const signedPercent = (ratio: number) => `${ratio > 0 ? '+' : ratio < 0 ? '\u2212' : ''}${formatPercent(Math.abs(ratio))}`;
const quantityText = (quantity: string) => quantity.replaceAll('_', ' ').replace('tflops', 'TFLOPS').replace('gpu', 'GPU');
const percentCell = (value: number) => ({text: formatPercent(value), value});
const insideText = (one: ComparedNumber) =>
  (one.low === undefined || one.high === undefined ? '-' : one.low <= one.measured && one.measured <= one.high ? 'yes' : 'no');

function statisticsChart(section: ValidationSection): HTMLElement {
  const columns = [{label: 'Quantity', left: true}, {label: 'Numbers'}, {label: 'Mean absolute error'}, {label: 'Bias'}, {label: 'Median'},
                   {label: '90th percentile'}, {label: 'Worst'}, {label: 'Inside the interval'}];
  const cells: TableCell[][] = section.result.statistics.map(one => [
    quantityText(one.quantity), {text: String(one.count), value: one.count}, percentCell(one.mean_absolute_error),
    {text: signedPercent(one.bias), value: one.bias}, percentCell(one.median_absolute_error), percentCell(one.percentile_90),
    {text: signedPercent(one.worst), value: one.worst}, one.inside_interval === undefined ? '-' : percentCell(one.inside_interval)]);
  return chart('Errors', 'Error: predicted over measured, minus 1. The interval is meant to contain 9 of 10 measurements.',
               csvButton('errors of each quantity', () => csvOfTable(columns, cells)), table('Errors of each quantity', columns, cells, false));
}

function numbersTable(numbers: ComparedNumber[], format: Format) {
  const columns = [{label: 'Run', left: true}, {label: 'Line'}, {label: 'Measured'}, {label: 'Predicted'}, {label: 'Error'},
                   {label: 'Low'}, {label: 'High'}, {label: 'Inside', left: true}];
  const number = (value: number | undefined) => (value === undefined ? '-' : {text: format(value), value});
  const cells: TableCell[][] = numbers.map(one => [one.run, {text: String(one.line), value: one.line}, number(one.measured), number(one.predicted),
    {text: signedPercent(one.error), value: one.error}, number(one.low), number(one.high), insideText(one)]);
  return {columns, cells};
}

function predictedChart(section: ValidationSection): HTMLElement {
  const {numbers, statistics} = section.result;
  let chosen = 0;
  const scatter = new Scatter();
  const box = details('Table');
  let shown = numbersTable([], String);
  const names = ['inside the interval', 'outside', 'no interval'];
  const show = () => {
    const {quantity} = statistics[chosen];
    const own = numbers.filter(one => one.quantity === quantity);
    const format = formatOf(quantity);
    shown = numbersTable(own, format);
    while (box.children.length > 1) box.lastChild!.remove();
    box.append(table(`Runs: ${quantityText(quantity)}`, shown.columns, shown.cells));
    const values = own.flatMap(one => [one.measured, one.predicted]).filter(value => value > 0);
    const low = Math.min(...values), high = Math.max(...values);
    scatter.show({
      label: `Predicted over measured ${quantityText(quantity)}`, square: true, height: 420, series: names,
      x: {label: `measured ${quantityText(quantity)}`, format, log: low > 0},
      y: {label: `predicted ${quantityText(quantity)}`, format, log: low > 0},
      lines: [{points: [[low, low], [high, high]]}],
      points: own.map(one => ({
        x: one.measured, y: one.predicted, low: one.low, high: one.high,
        series: insideText(one) === 'yes' ? 0 : insideText(one) === 'no' ? 1 : 2,
        text: `${one.run} (line ${one.line}): measured ${format(one.measured)}, predicted ${format(one.predicted)}, ${signedPercent(one.error)}`,
      })),
    });
  };
  show();
  return chart('Predicted and measured', 'On the line, both are equal. Vertical lines are the intervals.',
               csvButton('predicted and measured', () => csvOfTable(shown.columns, shown.cells)),
               statistics.length > 1 ? h('div', {class: 'controls'}, select('Quantity', statistics.map(one => quantityText(one.quantity)), 0,
                                                                         i => { chosen = i; show(); })) : null,
               scatter.element, seriesLegend(names), box);
}

// The quantile of sorted values.
const quantile = (sorted: number[], part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];

function residualsChart(section: ValidationSection): HTMLElement | null {
  const {numbers, runs, statistics} = section.result;
  if (!runs || runs.length === 0) return null;
  const fieldsOf = new Map(runs.map(run => [run.line, run.fields]));
  const quantities = new Set(statistics.map(one => one.quantity));
  const counts = new Map<string, Set<string>>();
  for (const {line} of numbers) {
    for (const [field, value] of Object.entries(fieldsOf.get(line) ?? {})) {
      if (quantities.has(field)) continue;
      if (!counts.has(field)) counts.set(field, new Set());
      counts.get(field)!.add(value);
    }
  }
  // Fields with a value for each run, such as names, do not group anything.
  const lines = new Set(numbers.map(one => one.line)).size;
  const fields = [...counts].filter(([, values]) => values.size > 1 && (values.size < lines || lines <= 8) && values.size <= 40).map(([field]) => field);
  if (fields.length === 0) return null;
  let field = 0, chosen = 0;
  const scatter = new Scatter();
  const columns = () => [{label: fields[field], left: true}, {label: 'Numbers'}, {label: 'Mean error'}, {label: 'Mean absolute error'},
                         {label: 'Median error'}, {label: 'Lowest'}, {label: 'Highest'}];
  let cells: TableCell[][] = [];
  const box = h('div');
  const show = () => {
    const {quantity} = statistics[chosen];
    const own = numbers.filter(one => one.quantity === quantity);
    const valueOf = (one: ComparedNumber) => fieldsOf.get(one.line)?.[fields[field]] ?? '';
    let values = [...new Set(own.map(valueOf))];
    values = values.every(value => value !== '' && Number.isFinite(Number(value)))
      ? values.sort((a, b) => Number(a) - Number(b)) : values.sort();
    const signed = (value: number) => ({text: signedPercent(value), value});
    cells = values.map(value => {
      const errors = own.filter(one => valueOf(one) === value).map(one => one.error).sort((a, b) => a - b);
      const mean = errors.reduce((a, b) => a + b, 0) / errors.length;
      return [value || '(none)', {text: String(errors.length), value: errors.length}, signed(mean),
              percentCell(errors.reduce((a, b) => a + Math.abs(b), 0) / errors.length), signed(quantile(errors, 0.5)),
              signed(errors[0]), signed(errors[errors.length - 1])];
    });
    box.replaceChildren(table(`Errors of ${quantityText(quantity)} by ${fields[field]}`, columns(), cells));
    const seen = new Map<string, number>();
    const sizes = new Map(values.map(value => [value, own.filter(one => valueOf(one) === value).length]));
    const points: ScatterPoint[] = own.map(one => {
      const value = valueOf(one), n = seen.get(value) ?? 0;
      seen.set(value, n + 1);
      // Side by side, so that equal errors do not hide each other.
      const spread = ((n + 0.5) / sizes.get(value)! - 0.5) * 0.6;
      return {x: values.indexOf(value) + spread, y: 100 * one.error, series: 0,
              text: `${one.run} (line ${one.line}), ${fields[field]} ${value}: ${signedPercent(one.error)}`};
    });
    scatter.show({
      label: `Errors of ${quantityText(quantity)} by ${fields[field]}`, points, series: ['run'],
      x: {label: fields[field], format: String, names: values.map(value => value || '(none)')},
      y: {label: 'error', format: value => `${Number(value.toPrecision(3))} %`},
      lines: [{points: [[-0.6, 0], [values.length - 0.4, 0]], dash: true},
              ...cells.map((row, i) => ({points: [[i - 0.35, 100 * (row[2] as {value: number}).value],
                                                  [i + 0.35, 100 * (row[2] as {value: number}).value]] as [number, number][]}))],
    });
  };
  show();
  return chart('Errors by field', 'Each point is a run; short lines are means.',
               csvButton('errors by field', () => csvOfTable(columns(), cells)),
               h('div', {class: 'controls'}, select('Field', fields, 0, i => { field = i; show(); }),
                 statistics.length > 1 ? select('Quantity', statistics.map(one => quantityText(one.quantity)), 0, i => { chosen = i; show(); }) : null),
               scatter.element, box);
}

function skippedChart(section: ValidationSection): HTMLElement | null {
  const {skipped, misfits} = section.result;
  if (skipped.length + misfits.length === 0) return null;
  const columns = [{label: 'Run', left: true}, {label: 'Line'}, {label: 'Reason', left: true}];
  const cells: TableCell[][] = [
    ...skipped.map(one => [one.run, {text: String(one.line), value: one.line}, one.reason]),
    ...misfits.map(one => [one.run, {text: String(one.line), value: one.line},
                           `measured not to fit in memory, predicted ${one.predicted_to_fit ? 'to fit' : 'not to fit either'}`])];
  return chart('Runs without numbers', '', csvButton('runs without numbers', () => csvOfTable(columns, cells)),
               table('Runs that were not compared or did not fit', columns, cells));
}

export function validationView(section: ValidationSection): HTMLElement {
  const root = h('section', {id: 'validation'}, h('h2', {}, 'Predictions and measurements'),
                 h('p', {}, `${section.result.num_runs} runs, ${section.result.numbers.length} measured numbers.`));
  if (section.result.statistics.length > 0) root.append(statisticsChart(section), predictedChart(section));
  for (const one of [residualsChart(section), skippedChart(section)]) if (one) root.append(one);
  return root;
}

// One executed schedule, action by action.
export function executionView(section: ExecutionSection): HTMLElement {
  const {result} = section;
  const columns = [{label: 'Action', left: true}, {label: 'Number'}, {label: 'Mean error of the duration'}, {label: 'Bias of the duration'},
                   {label: 'Mean error of the start'}];
  const cells: TableCell[][] = result.errors.map(one => [one.op, {text: String(one.count), value: one.count},
    percentCell(one.duration.mean_absolute_error), {text: signedPercent(one.duration.bias), value: one.duration.bias},
    percentCell(one.start.mean_absolute_error)]);
  const opOf = (action: string) => (action.includes('step') ? 'optimizer step' : action.replace(/[\d\s-]/g, '').slice(0, 8));
  const ops = [...new Set(result.actions.map(one => opOf(one.action)))];
  const scatter = new Scatter();
  const rows = [{label: 'Action', left: true}, {label: 'Rank'}, {label: 'Predicted start'}, {label: 'Predicted time'}, {label: 'Measured start'}, {label: 'Measured time'}];
  const seconds = (value: number) => ({text: formatSeconds(value), value});
  const actionRow = (one: ExecutionSection['result']['actions'][0]): TableCell[] => [one.action, {text: String(one.rank), value: one.rank},
    seconds(one.predicted_start_seconds), seconds(one.predicted_seconds), seconds(one.measured_start_seconds), seconds(one.measured_seconds)];
  const known = result.actions.filter(one => one.measured_seconds > 0 && one.predicted_seconds > 0);
  const low = known.reduce((a, one) => Math.min(a, one.measured_seconds, one.predicted_seconds), Infinity);
  const high = known.reduce((a, one) => Math.max(a, one.measured_seconds, one.predicted_seconds), 0);
  if (known.length > 0) {
    scatter.show({
      label: 'Predicted over measured time of each action', square: true, height: 420, series: ops,
      x: {label: 'measured time', format: formatSeconds, log: true}, y: {label: 'predicted time', format: formatSeconds, log: true},
      lines: [{points: [[low, low], [high, high]]}],
      points: known.map(one => ({
        x: one.measured_seconds, y: one.predicted_seconds, series: ops.indexOf(opOf(one.action)),
        text: `${one.action} on rank ${one.rank}: measured ${formatSeconds(one.measured_seconds)}, predicted ${formatSeconds(one.predicted_seconds)}`})),
    });
  }
  const most = 300;
  return h('section', {id: 'execution'}, h('h2', {}, 'Prediction and execution'),
    h('p', {class: 'verdict'}, `Makespan: predicted ${formatSeconds(result.makespan_seconds.predicted)}, measured ${formatSeconds(result.makespan_seconds.measured)} (${signedPercent(result.makespan_seconds.error)})`),
    chart('Errors of actions', '', csvButton('errors of actions', () => csvOfTable(columns, cells)), table('Errors by kind of action', columns, cells)),
    chart('Time of each action', 'On the line, both are equal.', csvButton('the time of each action', () => csvOfTable(rows, result.actions.map(actionRow))),
          scatter.element, seriesLegend(ops.map(passText)),
          details(result.actions.length > most ? `Table of the first ${most} actions` : 'Table', table('Actions', rows, result.actions.slice(0, most).map(actionRow)))));
}
