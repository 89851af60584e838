// SPDX-License-Identifier: Apache-2.0
// Where the time of a batch goes, and the waterfall from one run to another.
import {bars} from './bars.ts';
import {chart, csvButton, csvOfTable, details, h, legend, name, select, table, type TableCell} from './dom.ts';
import {formatPercent, formatSeconds, signedSeconds} from './format.ts';
import {PART_COLORS, PART_TEXTS} from './kinds.ts';
import type {Report} from './load.ts';
import type {BreakdownSection} from './model.ts';

const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);

function stepChart(section: BreakdownSection, names: string[]): HTMLElement | null {
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run].seconds);
  if (known.length === 0) return null;
  const rows = known.map(run => ({
    label: names[run],
    text: formatSeconds(section.runs[run].batch_seconds),
    parts: section.parts.map((part, i) => ({
      label: part.name, color: PART_COLORS[part.json] ?? '#777777', value: section.runs[run].seconds![i],
      text: `${section.runs[run].texts![i]}, ${section.runs[run].ratios![i]}`})),
  }));
  const columns = [{label: 'Part', left: true}, {label: 'What it is', left: true},
                   ...known.flatMap(run => [{label: names[run]}, {label: known.length > 1 ? `of the step of ${names[run]}` : 'of the step'}])];
  const cells: TableCell[][] = section.parts.map((part, i) => [
    part.name, PART_TEXTS[part.json] ?? '',
    ...known.flatMap(run => {
      const {seconds, texts, ratios, batch_seconds} = section.runs[run];
      return [{text: texts![i], value: seconds![i]}, {text: ratios![i], value: seconds![i] / batch_seconds}];
    }),
  ]);
  cells.push(['sum', 'the step time', ...known.flatMap(run => {
    const total = sum(section.runs[run].seconds!);
    return [{text: formatSeconds(total), value: total}, {text: formatPercent(total / section.runs[run].batch_seconds), value: 1}];
  })]);
  return chart('Where the time of a step goes', 'Mean over all GPUs. The parts add up to the step time.',
               csvButton('the parts of the step', () => csvOfTable(columns, cells)),
               bars('Parts of the step', rows),
               legend(section.parts.filter((_, i) => known.some(run => section.runs[run].seconds![i] > 0)).map(part =>
                 [PART_TEXTS[part.json] ? `${part.name}: ${PART_TEXTS[part.json]}` : part.name, PART_COLORS[part.json] ?? '#777777'])),
               details('Table', table('Parts of the step', columns, cells)));
}

interface Step {
  label: string;
  text: string;
  from: number;
  to: number;
  color: string;
}

function waterfallSteps(section: BreakdownSection, a: number, b: number, names: string[]): Step[] {
  const from = section.runs[a], to = section.runs[b];
  let at = sum(from.seconds!);
  const steps: Step[] = [{label: names[a], text: formatSeconds(from.batch_seconds), from: 0, to: at, color: '#777777'}];
  section.parts.forEach((part, i) => {
    const change = to.seconds![i] - from.seconds![i];
    // Smaller changes are rounding errors.
    if (Math.abs(change) <= 1e-12 * from.batch_seconds) return;
    steps.push({label: part.name, text: signedSeconds(change), from: at, to: at + change,
                color: change > 0 ? '#D55E00' : '#0072B2'});
    at += change;
  });
  steps.push({label: names[b], text: formatSeconds(to.batch_seconds), from: 0, to: sum(to.seconds!), color: '#777777'});
  return steps;
}

function waterfall(section: BreakdownSection, names: string[], fastest: number | null): HTMLElement | null {
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run].seconds);
  if (known.length < 2) return null;
  let a = known[0], b = fastest !== null && fastest !== a && known.includes(fastest) ? fastest : known[1];
  const body = h('div');
  const columns = [{label: 'Part', left: true}, {label: 'A'}, {label: 'B'}, {label: 'B \u2212 A'}];
  let cells: TableCell[][] = [];
  const show = () => {
    const from = section.runs[a], to = section.runs[b];
    const row = (label: string, x: number, y: number): TableCell[] => [
      label, {text: formatSeconds(x), value: x}, {text: formatSeconds(y), value: y},
      {text: signedSeconds(y - x), value: y - x}];
    cells = section.parts.map((part, i) => row(part.name, from.seconds![i], to.seconds![i]));
    cells.push(row('step time', from.batch_seconds, to.batch_seconds));
    const steps = waterfallSteps(section, a, b, names);
    body.replaceChildren(
      bars(`From ${names[a]} to ${names[b]}`, steps.map(step => ({
        label: step.label, text: step.text, begin: Math.min(step.from, step.to),
        parts: [{label: step.label, color: step.color, value: Math.abs(step.to - step.from), text: step.text}],
      }))),
      legend([['slower', '#D55E00'], ['faster', '#0072B2'], ['step time', '#777777']]),
      details('Table', table('Change of each part', columns, cells)));
  };
  show();
  const options = known.map(run => names[run]);
  return chart('From one run to another',
               'Each bar is the change of one part of the step, the mean over all GPUs; together they are the change of the step time.',
               csvButton('the changes from A to B', () => csvOfTable(columns, cells)),
               h('div', {class: 'controls'},
                 select('A', options, known.indexOf(a), i => { a = known[i]; show(); }),
                 select('B', options, known.indexOf(b), i => { b = known[i]; show(); })),
               body);
}

function busiestChart(section: BreakdownSection, names: string[]): HTMLElement | null {
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run].busiest_parts.length > 0);
  if (known.length === 0) return null;
  let chosen = known[0];
  const body = h('div');
  const columns = [{label: 'Part', left: true}, {label: 'Time'}, {label: 'of the step'}, {label: 'in forwards'}, {label: 'in backwards'}];
  let cells: TableCell[][] = [];
  const show = () => {
    const run = section.runs[chosen];
    const largest = [...run.busiest_parts].sort((x, y) => y.seconds - x.seconds);
    cells = largest.map(part => [
      part.name.replaceAll('_', ' '), {text: part.text, value: part.seconds},
      {text: formatPercent(part.seconds / run.batch_seconds), value: part.seconds / run.batch_seconds},
      {text: formatSeconds(part.forward_seconds), value: part.forward_seconds},
      {text: formatSeconds(part.backward_seconds), value: part.backward_seconds}]);
    body.replaceChildren(
      h('p', {class: 'note'}, 'GPU: ', name(run.busiest), `. Its parts add up to the step time, ${formatSeconds(run.batch_seconds)}.`),
      bars('Parts of the busiest GPU', largest.slice(0, 16).map(part => ({
        label: part.name.replaceAll('_', ' '), text: part.text,
        parts: [{label: part.name, color: '#56B4E9', value: part.seconds, text: part.text}],
      }))),
      details('Table', table('Parts of the busiest GPU', columns, cells)));
  };
  show();
  return chart('The busiest GPU, part by part', '', csvButton('the busiest GPU', () => csvOfTable(columns, cells)),
               known.length > 1 ? select('Run', known.map(run => names[run]), 0, i => { chosen = known[i]; show(); }) : null,
               body);
}

export function breakdownView(section: BreakdownSection, report: Report): HTMLElement | null {
  const names = report.header.runs.map(run => run.name);
  const figures = report.header.sections.find(one => one.type === 'figures');
  const charts = [stepChart(section, names),
                  waterfall(section, names, figures?.type === 'figures' ? figures.fastest : null),
                  busiestChart(section, names)].filter(one => one !== null);
  if (charts.length === 0) return null;
  return h('section', {id: 'step'}, h('h2', {}, 'Time of a step'), ...charts);
}
