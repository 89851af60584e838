// SPDX-License-Identifier: Apache-2.0
// What slow operations, stages and workers cost a recorded run.
import {bars} from './bars.ts';
import {cards, chart, csvButton, csvOfTable, details, h, name, style, table, type TableCell} from './dom.ts';
import {formatPercent, formatSeconds} from './format.ts';
import type {StragglersSection} from './model.ts';
import {heat, heatPart} from './palette.ts';
import {Scatter, seriesLegend} from './scatter.ts';
import {onTheme} from './theme.ts';

const MOST_BARS = 20;

type Result = StragglersSection['result'];

const seconds = (value: number) => ({text: formatSeconds(value), value});
const slowdownText = (value: number) => value.toFixed(4);

function timesChart(result: Result): HTMLElement {
  const times: [label: string, value: number][] = [
    ['recorded', result.recorded_seconds], ['replayed, with gaps', result.with_gaps_seconds], ['replayed', result.replayed_seconds],
    ['ideal, no stragglers', result.ideal_seconds]];
  const columns = [{label: 'Step time', left: true}, {label: 'Mean'}, {label: 'Of the recording'}];
  const ratio = (value: number) => (result.recorded_seconds > 0 ? {text: formatPercent(value / result.recorded_seconds), value: value / result.recorded_seconds} : '-');
  const cells: TableCell[][] = times.map(([label, value]) => [label, seconds(value), ratio(value)]);
  return chart('Step time', 'Mean over the steps. Without stragglers, every operation takes the mean or median time of its kind.',
               csvButton('the step times', () => csvOfTable(columns, cells)),
               bars('Step time, recorded and replayed', times.map(([label, value]) => ({
                 label, text: formatSeconds(value), parts: [{label, color: label.startsWith('ideal') ? '#009E73' : '#56B4E9', value, text: formatSeconds(value)}]}))),
               details('Table', table('Step time, recorded and replayed', columns, cells)));
}

function slowdownChart(of: string, note: string, rows: Result['by_kind']): HTMLElement | null {
  if (rows.length === 0) return null;
  const columns = [{label: of, left: true}, {label: 'Slowdown'}];
  const cells: TableCell[][] = rows.map(row => [row.name, {text: slowdownText(row.slowdown), value: row.slowdown}]);
  return chart(`Slowdown by ${of.toLowerCase()}`, `${note} Bars begin at 1.`, csvButton(`the slowdown by ${of.toLowerCase()}`, () => csvOfTable(columns, cells)),
               bars(`Slowdown by ${of.toLowerCase()}`, rows.slice(0, MOST_BARS).map(row => ({
                 label: row.name, text: slowdownText(row.slowdown),
                 parts: [{label: row.name, color: '#D55E00', value: Math.max(row.slowdown - 1, 0), text: slowdownText(row.slowdown)}]}))),
               details('Table', table(`Slowdown by ${of.toLowerCase()}`, columns, cells)));
}

function workersChart(result: Result): HTMLElement | null {
  const workers = result.by_worker;
  if (workers.length === 0) return null;
  const of = (values: number[]) => [...new Set(values)].sort((a, b) => a - b);
  const replicas = of(workers.map(worker => worker.replica)), ranks = of(workers.map(worker => worker.rank));
  const key = (replica: number, rank: number) => `${replica} ${rank}`;
  const known = new Map(workers.map(worker => [key(worker.replica, worker.rank), worker.slowdown]));
  const slow = new Map(result.slow_workers.map(worker => [key(worker.replica, worker.rank), worker.speed]));
  const low = workers.reduce((a, worker) => Math.min(a, worker.slowdown), Infinity);
  const high = workers.reduce((a, worker) => Math.max(a, worker.slowdown), -Infinity);
  const columns = [{label: 'replica \\ rank', left: true}, ...ranks.map(rank => ({label: String(rank)}))];
  let cells: TableCell[][] = [];
  const body = h('div');
  const show = () => {
    cells = replicas.map(replica => [{text: String(replica), value: replica}, ...ranks.map((rank): TableCell => {
      const value = known.get(key(replica, rank)), speed = slow.get(key(replica, rank));
      if (value === undefined) return '-';
      const element = h('span', {class: 'heat'}, value.toFixed(3));
      element.title = `replica ${replica}, rank ${rank}: ${slowdownText(value)}${speed === undefined ? '' : `, computes at ${formatPercent(speed)} of the others' speed`}`;
      const {background, text} = heat(heatPart(value, low, high));
      style(element, {background, color: text});
      if (speed !== undefined) element.append(h('span', {}, ' \u25BC'));
      return {text: slowdownText(value), value, element};
    })]);
    const box = table('Slowdown of each worker', columns, cells, false);
    box.classList.add('heat-map');
    body.replaceChildren(box);
  };
  show();
  onTheme(show);
  const marks = slow.size > 0 ? ` \u25BC: computes slower than the same stage of other replicas (${result.slow_workers.length}).` : '';
  return chart('Workers', `The smaller one of the slowdowns of the worker's replica and stage, as in arXiv 2505.05713.${marks}`,
               csvButton('the slowdown of workers', () => csvOfTable(columns, cells)), body,
               result.slow_flag ? h('p', {class: 'note'}, 'For simulate and plan with the layout of the run: ', h('code', {}, '--slow ', name(result.slow_flag))) : null);
}

function stepsChart(result: Result): HTMLElement | null {
  if (result.steps.length < 2) return null;
  const series: [label: string, of: (step: Result['steps'][0]) => number][] = [
    ['recorded', step => step.recorded_seconds], ['replayed', step => step.replayed_seconds], ['ideal', step => step.ideal_seconds]];
  const scatter = new Scatter();
  scatter.show({
    label: 'Recorded, replayed and ideal time of each step', series: series.map(([label]) => label),
    x: {label: 'step', format: String}, y: {label: 'step time', format: formatSeconds, zero: true},
    points: result.steps.flatMap(step => series.map(([label, of], i) => ({
      x: step.step, y: of(step), series: i, text: `Step ${step.step}, ${label}: ${formatSeconds(of(step))}`}))),
  });
  const columns = [{label: 'Step', left: true}, {label: 'Recorded'}, {label: 'Replayed, with gaps'}, {label: 'Replayed'}, {label: 'Ideal'}];
  const cells: TableCell[][] = result.steps.map(step => [{text: String(step.step), value: step.step}, seconds(step.recorded_seconds),
    seconds(step.with_gaps_seconds), seconds(step.replayed_seconds), seconds(step.ideal_seconds)]);
  return chart('Steps', '', csvButton('the times of each step', () => csvOfTable(columns, cells)), scatter.element,
               seriesLegend(series.map(([label]) => label)), details('Table', table('Times of each step', columns, cells)));
}

function slackChart(result: Result): HTMLElement | null {
  if (result.slack_seconds_by_stage.length === 0) return null;
  const columns = [{label: 'Stage', left: true}, {label: 'Median slack'}];
  const rows = result.slack_seconds_by_stage.map((value, stage) => ({label: `stage ${stage}`, value}));
  const cells: TableCell[][] = rows.map(({label, value}, i) => [{text: label, value: i}, seconds(value)]);
  return chart('Slack', 'How much longer one pass of a stage could take without a longer step; the median over its passes.',
               csvButton('the slack of stages', () => csvOfTable(columns, cells)),
               bars('Median slack of the passes of each stage', rows.map(({label, value}) => ({
                 label, text: formatSeconds(value), parts: [{label, color: '#0072B2', value, text: formatSeconds(value)}]}))),
               details('Table', table('Median slack of the passes of each stage', columns, cells)));
}

export function stragglersView(section: StragglersSection): HTMLElement {
  const {result} = section;
  const root = h('section', {id: 'stragglers'}, h('h2', {}, 'Stragglers'),
    h('p', {}, name(result.format), `, ${result.steps.length} steps, ${result.num_replicas} replicas x ${result.num_stages} stages.`),
    h('p', {class: 'verdict'}, name(result.suspect)),
    cards([['Slowdown S', slowdownText(result.slowdown), 'replayed over ideal'],
           ['Recorded step', formatSeconds(result.recorded_seconds), ''],
           ['Ideal step', formatSeconds(result.ideal_seconds), ''],
           ['Slowest workers, M_W', slowdownText(result.slowest_workers.share), `of the slowdown, explained by ${result.slowest_workers.of.slice(0, 2).join('; ')}${result.slowest_workers.of.length > 2 ? ' and others' : ''}`],
           ['Last stage, M_S', slowdownText(result.last_stage.share), `of the slowdown, explained by ${result.last_stage.of.join('; ')}`]]));
  const only = 'The step if only these operations keep their recorded times, over the ideal step.';
  for (const one of [timesChart(result), slowdownChart('Operation', only, result.by_kind), slowdownChart('Stage', only, result.by_stage),
                     result.num_replicas > 1 ? slowdownChart('Replica', only, result.by_replica) : null, workersChart(result),
                     stepsChart(result), slackChart(result)]) {
    if (one) root.append(one);
  }
  return root;
}
