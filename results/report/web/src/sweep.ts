// SPDX-License-Identifier: Apache-2.0
// The points of a sweep as a heat map of two fields and a metric.
import {chart, csvButton, csvOfTable, details, h, name, select, style, table, type TableCell} from './dom.ts';
import {formatBytes, formatCount, formatPercent, formatSeconds} from './format.ts';
import type {SweepPoint, SweepSection} from './model.ts';
import {heat} from './palette.ts';
import {Scatter} from './scatter.ts';
import {onTheme} from './theme.ts';

interface Metric {
  key: string;
  label: string;
  format: (value: number) => string;
  higher?: boolean;  // is better
}

// The columns of results, as plan/sweep/sweep.proto names them.
const METRICS: Metric[] = [
  {key: 'batch_seconds', label: 'step time', format: formatSeconds},
  {key: 'samples_per_second', label: 'samples per second', format: formatCount, higher: true},
  {key: 'tokens_per_second', label: 'tokens per second', format: formatCount, higher: true},
  {key: 'tokens_per_second_per_gpu', label: 'tokens per second and GPU', format: formatCount, higher: true},
  {key: 'model_flops_utilization', label: 'MFU', format: formatPercent, higher: true},
  {key: 'bubble_ratio', label: 'bubble', format: formatPercent},
  {key: 'idle_ratio', label: 'idle', format: formatPercent},
  {key: 'exposed_communication_ratio', label: 'exposed communication', format: formatPercent},
  {key: 'peak_memory_bytes', label: 'peak memory', format: formatBytes},
  {key: 'makespan_seconds', label: 'makespan', format: formatSeconds},
  {key: 'num_gpus', label: 'GPUs', format: String},
  {key: 'microbatches', label: 'microbatches', format: String},
  {key: 'weight_versions', label: 'weight versions', format: String},
  {key: 'staleness_updates', label: 'staleness in updates', format: String},
];
const MOST_ROWS = 500;

function metricOf(point: SweepPoint, key: string): number | null {
  if (point.outcome !== 'done') return null;
  if (key === 'tokens_per_second_per_gpu') {
    const tokens = point['tokens_per_second'], gpus = point['num_gpus'];
    return typeof tokens === 'number' && typeof gpus === 'number' && gpus > 0 ? tokens / gpus : null;
  }
  const value = point[key];
  if (key === 'peak_memory_bytes' && value === 0) return null;
  return typeof value === 'number' ? value : null;
}

const textOf = (value: SweepPoint[string] | undefined) => (value === undefined ? '' : String(value));

// Why a point was not simulated, in one line.
const errorOf = (point: SweepPoint) => textOf(point['error']).split('\n').map(line => line.trim()).filter(line => line !== '').join('; ');

// Distinct values in the order of the sweep; numbers by value.
function valuesOf(points: SweepPoint[], field: string): string[] {
  const values = [...new Set(points.map(point => textOf(point[field])))];
  return values.every(value => value !== '' && Number.isFinite(Number(value)))
    ? values.sort((a, b) => Number(a) - Number(b)) : values;
}

const axisOf = ({key, label, format}: Metric) => ({label, format, bytes: key === 'peak_memory_bytes'});

interface Cell {
  value: number | null;
  point: SweepPoint | null;
  done: number;
  misfits: number;
  others: string[];  // reasons of points that are not done
}

class HeatMap {
  readonly element = h('div');
  private rows: string;
  private columns: string;
  private metric: Metric;
  private cells: TableCell[][] = [];
  private heads: {label: string; left?: boolean}[] = [];

  constructor(private points: SweepPoint[], private fields: string[], private metrics: Metric[]) {
    this.rows = fields[0];
    this.columns = fields[1] ?? fields[0];
    this.metric = metrics[0];
    onTheme(() => this.show());
  }

  view(): HTMLElement {
    const controls = h('div', {class: 'controls'},
      select('Rows', this.fields, 0, i => { this.rows = this.fields[i]; this.show(); }),
      select('Columns', this.fields, Math.min(1, this.fields.length - 1), i => { this.columns = this.fields[i]; this.show(); }),
      select('Metric', this.metrics.map(metric => metric.label), 0, i => { this.metric = this.metrics[i]; this.show(); }));
    this.show();
    return chart('Heat map', 'A cell has the best value over all other fields, of the points that fit in memory. Better values contrast more with the page.',
                 csvButton('the heat map', () => csvOfTable(this.heads, this.cells)), controls, this.element);
  }

  private cell(points: SweepPoint[]): Cell {
    const cell: Cell = {value: null, point: null, done: 0, misfits: 0, others: []};
    for (const point of points) {
      if (point.outcome !== 'done') {
        cell.others.push(errorOf(point) || point.outcome);
        continue;
      }
      cell.done++;
      if (point['fits_memory'] === false) {
        cell.misfits++;
        continue;
      }
      const value = metricOf(point, this.metric.key);
      if (value === null) continue;
      if (cell.value === null || (this.metric.higher ? value > cell.value : value < cell.value)) {
        cell.value = value;
        cell.point = point;
      }
    }
    return cell;
  }

  private show(): void {
    const one = this.rows === this.columns;
    const rows = valuesOf(this.points, this.rows), columns = one ? [''] : valuesOf(this.points, this.columns);
    const groups = new Map<string, SweepPoint[]>();
    const key = (row: string, column: string) => JSON.stringify([row, column]);
    for (const point of this.points) {
      const at = key(textOf(point[this.rows]), one ? '' : textOf(point[this.columns]));
      if (!groups.has(at)) groups.set(at, []);
      groups.get(at)!.push(point);
    }
    const grid = rows.map(row => columns.map(column => this.cell(groups.get(key(row, column)) ?? [])));
    const known = grid.flat().map(cell => cell.value).filter(value => value !== null);
    const low = known.reduce((a, b) => Math.min(a, b), Infinity), high = known.reduce((a, b) => Math.max(a, b), -Infinity);
    const best = this.metric.higher ? high : low;
    // Dark is better. Ratios of many magnitudes are shown by their logarithm.
    const log = low > 0 && high / low > 20;
    const part = (value: number) => {
      if (!(high > low)) return 0.4;
      const x = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
      return this.metric.higher ? x : 1 - x;
    };
    this.heads = [{label: one ? this.rows : `${this.rows} \\ ${this.columns}`, left: true},
                  ...columns.map(column => ({label: one ? this.metric.label : column || '(none)'}))];
    this.cells = grid.map((cells, r) => [rows[r] || '(none)', ...cells.map(cell => {
      const why = cell.misfits > 0 ? 'no fit' : cell.others.length > 0 ? 'refused' : '-';
      const text = cell.value === null ? why : this.metric.format(cell.value);
      const element = h('span', {class: 'heat'}, text);
      const lines = [`${cell.done} done, ${cell.misfits} of them do not fit, ${cell.others.length} not done`];
      if (cell.point) {
        lines.unshift(this.fields.map(field => `${field} ${textOf(cell.point![field])}`).join(', '));
      } else if (cell.others.length > 0) {
        lines.push(cell.others[0].slice(0, 300));
      }
      element.title = lines.join('\n');
      if (cell.value !== null) {
        const {background, text: color} = heat(part(cell.value));
        style(element, {background, color});
        if (cell.value === best && known.length > 1) element.append(h('span', {}, ' \u2605'));
      }
      return {text, value: cell.value, element};
    })]);
    const box = table(`Best ${this.metric.label} by ${this.rows}${one ? '' : ` and ${this.columns}`}; \u2605: the best; no fit: no point fits in memory`,
                      this.heads, this.cells, false);
    box.classList.add('heat-map');
    this.element.replaceChildren(box);
  }
}

function pointsChart(points: SweepPoint[], fields: string[], metrics: Metric[]): HTMLElement {
  const shown = metrics.slice(0, 9);
  const columns = [{label: 'point', left: true}, ...fields.map(label => ({label})), {label: 'outcome', left: true},
                   ...shown.map(metric => ({label: metric.label})), {label: 'fits', left: true}, {label: 'error', left: true}];
  const row = (point: SweepPoint): TableCell[] => [
    {text: String(point.point), value: Number(point.point)},
    ...fields.map(field => {
      const value = point[field];
      return typeof value === 'number' ? {text: String(value), value} : textOf(value);
    }), point.outcome,
    ...shown.map(metric => {
      const value = metricOf(point, metric.key);
      return {text: value === null ? '-' : metric.format(value), value};
    }), point['fits_memory'] === undefined ? '-' : point['fits_memory'] ? 'yes' : 'no', errorOf(point)];
  const fits = (point: SweepPoint) => Number(point['fits_memory'] === true);
  const first = (point: SweepPoint) => metricOf(point, metrics[0].key) ?? Infinity;
  const sorted = [...points].sort((a, b) => fits(b) - fits(a) || first(a) - first(b));
  const cut = sorted.slice(0, MOST_ROWS).map(row);
  return chart('All points', points.length > MOST_ROWS ? `The ${MOST_ROWS} fastest that fit; Copy CSV copies all.` : 'Those that fit first, then the fastest first.',
               csvButton('all points', () => csvOfTable(columns, sorted.map(row))), table('All points', columns, cut));
}

function scatterChart(points: SweepPoint[], fields: string[], metrics: Metric[]): HTMLElement | null {
  if (metrics.length < 2) return null;
  const done = points.filter(point => point.outcome === 'done');
  let x = 0, y = Math.max(1, metrics.findIndex(metric => metric.key === 'peak_memory_bytes'));
  const scatter = new Scatter();
  const columns = () => [{label: 'point', left: true}, {label: metrics[x].label}, {label: metrics[y].label}, {label: 'fits'}];
  let cells: TableCell[][] = [];
  const box = details('Table');
  const fill = () => {
    while (box.children.length > 1) box.lastChild!.remove();
    if (box.open) box.append(table(`The first ${MOST_ROWS} points`, columns(), cells.slice(0, MOST_ROWS)));
  };
  box.addEventListener('toggle', fill);
  const show = () => {
    const known = done.map(point => ({point, x: metricOf(point, metrics[x].key), y: metricOf(point, metrics[y].key)}))
      .filter(one => one.x !== null && one.y !== null) as {point: SweepPoint; x: number; y: number}[];
    cells = known.map(one => [{text: String(one.point.point), value: Number(one.point.point)}, {text: metrics[x].format(one.x), value: one.x},
                              {text: metrics[y].format(one.y), value: one.y}, one.point['fits_memory'] === false ? 'no' : 'yes']);
    fill();
    scatter.show({
      label: `${metrics[y].label} over ${metrics[x].label} of all points`, series: ['fits', 'does not fit'],
      x: axisOf(metrics[x]), y: axisOf(metrics[y]),
      points: known.map(one => ({x: one.x, y: one.y, series: one.point['fits_memory'] === false ? 1 : 0,
                                 text: `Point ${one.point.point}: ${fields.map(field => `${field} ${textOf(one.point[field])}`).join(', ')}; ${metrics[x].format(one.x)}, ${metrics[y].format(one.y)}`})),
    });
  };
  show();
  const names = metrics.map(metric => metric.label);
  return chart('Two metrics', 'Circles fit in memory; squares do not.', csvButton('two metrics', () => csvOfTable(columns(), cells)),
               h('div', {class: 'controls'}, select('Across', names, x, i => { x = i; show(); }), select('Up', names, y, i => { y = i; show(); })),
               scatter.element, box);
}

function reasonsChart(points: SweepPoint[]): HTMLElement | null {
  const counts = new Map<string, number>();
  for (const point of points) {
    if (point.outcome === 'done') continue;
    const reason = errorOf(point) || point.outcome;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  if (counts.size === 0) return null;
  const columns = [{label: 'Points', left: true}, {label: 'Reason', left: true}];
  const cells: TableCell[][] = [...counts].sort((a, b) => b[1] - a[1]).map(([reason, value]) => [{text: String(value), value}, reason]);
  return chart('Not simulated', '', csvButton('points that were not simulated', () => csvOfTable(columns, cells)),
               table('Points that were not simulated, by reason', columns, cells));
}

export function sweepView(section: SweepSection): HTMLElement {
  const {result} = section;
  const root = h('section', {id: 'sweep'}, h('h2', {}, 'Sweep'),
    h('p', {}, `${result.num_points} points: ${result.num_done} done, ${result.num_refused} refused, ${result.num_failed} failed, ${result.num_missing} missing.`));
  const metrics = METRICS.filter(metric => result.points.some(point => metricOf(point, metric.key) !== null));
  if (metrics.length > 0 && result.fields.length > 0) {
    const best = result.points.filter(point => point.outcome === 'done' && point['fits_memory'] !== false)
      .sort((a, b) => (metricOf(a, 'batch_seconds') ?? Infinity) - (metricOf(b, 'batch_seconds') ?? Infinity))[0];
    if (best) {
      root.append(h('p', {class: 'verdict'}, 'Fastest step that fits: ', name(result.fields.map(field => `${field} ${textOf(best[field])}`).join(', ')),
                    `, ${formatSeconds(metricOf(best, 'batch_seconds')!)}`));
    }
    root.append(new HeatMap(result.points, result.fields, metrics).view());
  }
  for (const one of [metrics.length > 0 ? scatterChart(result.points, result.fields, metrics) : null,
                     metrics.length > 0 ? pointsChart(result.points, result.fields, metrics) : null, reasonsChart(result.points)]) {
    if (one) root.append(one);
  }
  return root;
}
