// SPDX-License-Identifier: Apache-2.0
// Peaks of memory by class, and memory over time.
import uPlot from 'uplot';

import {bars} from './bars.ts';
import {chart, csvButton, csvOfTable, type CsvRow, details, h, legend, name, select, table, type TableCell} from './dom.ts';
import {formatBytes, formatSeconds, formatTime} from './format.ts';
import {CLASS_COLORS, classText} from './kinds.ts';
import type {Report} from './load.ts';
import type {MemorySection, MemorySeries} from './model.ts';
import {canvasColor} from './palette.ts';
import {cssColor, fontOf, fontPixels, onTheme, plotHeight, plotWidth} from './theme.ts';

const GIB = 2 ** 30;

// ---- peaks

function peaksChart(section: MemorySection, names: string[]): HTMLElement | null {
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run].peaks.some(peak => peak.peak_bytes > 0));
  if (known.length === 0) return null;
  let chosen = known[0];
  const body = h('div');
  let columns: {label: string; left?: boolean}[] = [], cells: TableCell[][] = [];
  const show = () => {
    const {peaks, capacity_bytes} = section.runs[chosen];
    const used = CLASS_COLORS.filter(([key]) => peaks.some(peak => (peak.classes[key] ?? 0) > 0));
    columns = [{label: 'Rank', left: true}, {label: 'GPU'}, ...used.map(([key]) => ({label: classText(key)})),
               {label: 'peak'}, {label: 'at'}, {label: 'cached besides'}];
    const bytes = (value: number) => ({text: formatBytes(value), value});
    cells = peaks.map(peak => [
      {text: `rank ${peak.rank}`, value: peak.rank}, {text: String(peak.gpu), value: peak.gpu},
      ...used.map(([key]) => bytes(peak.classes[key] ?? 0)), {text: peak.peak_text, value: peak.peak_bytes},
      {text: formatSeconds(peak.peak_at_seconds), value: peak.peak_at_seconds}, bytes(peak.cached_bytes)]);
    body.replaceChildren(
      bars('Peak memory of each rank by class', peaks.map(peak => ({
        label: `rank ${peak.rank}`, text: peak.peak_text,
        parts: used.map(([key, color]) => ({label: classText(key), color, value: peak.classes[key] ?? 0,
                                            text: formatBytes(peak.classes[key] ?? 0)})),
      })), capacity_bytes === null ? undefined : {value: capacity_bytes, text: `memory of the GPU, ${formatBytes(capacity_bytes)}`}),
      legend(used.map(([key, color]) => [classText(key), color])),
      details('Table', table('Peak memory of each rank', columns, cells)));
  };
  show();
  return chart('Peak memory by class', 'Of each pipeline rank the GPU with the largest peak.',
               csvButton('peak memory', () => csvOfTable(columns, cells)),
               known.length > 1 ? select('Run', known.map(run => names[run]), 0, i => { chosen = known[i]; show(); }) : null,
               body);
}

// ---- over time

interface Steps {
  seconds: number[];
  classes: number[];  // indices into section.classes, from the bottom of the stack
  bytes: number[][];  // [class][step]
}

const order = new Map(CLASS_COLORS.map(([key], i) => [key, i]));
const colorOf = (key: string) => canvasColor(CLASS_COLORS[order.get(key) ?? 0][1]);

function stepsOf(section: MemorySection, report: Report, series: MemorySeries): Steps {
  const gap = report.column(section.columns.gap), kind = report.column(section.columns.kind);
  const index = report.column(section.columns.bytes), values = report.column(section.columns.bytes_values);
  const end = series.begin + series.size;
  const used = new Set<number>();
  for (let i = series.begin; i < end; i++) used.add(kind[i]);
  const classes = [...used].sort((a, b) => order.get(section.classes[a])! - order.get(section.classes[b])!);
  const place = new Map(classes.map((one, i) => [one, i]));
  const now = classes.map(() => 0);
  const steps: Steps = {seconds: [], classes, bytes: classes.map(() => [])};
  let tick = 0;
  for (let i = series.begin; i < end; i++) {
    tick += gap[i];
    now[place.get(kind[i])!] = values[index[i]];
    if (i + 1 < end && gap[i + 1] === 0) continue;  // simultaneous changes are one step
    steps.seconds.push(tick * section.tick_seconds);
    now.forEach((bytes, one) => steps.bytes[one].push(bytes));
  }
  const makespan = section.runs[series.run].makespan_seconds;
  if (steps.seconds.length > 0 && steps.seconds[steps.seconds.length - 1] < makespan) {
    steps.seconds.push(makespan);
    for (const column of steps.bytes) column.push(column[column.length - 1]);
  }
  return steps;
}

const MOST_DRAWN = 6000, MOST_ROWS = 200;

// Keeps the fullest step of each of `most` equal parts of the time.
function thinned(steps: Steps, most: number): number[] {
  const total = steps.seconds.length;
  if (total <= most) return steps.seconds.map((_, i) => i);
  const first = steps.seconds[0], width = (steps.seconds[total - 1] - first) / most;
  const kept: number[] = [];
  let bucket = -1, fullest = -1;
  for (let i = 0; i < total; i++) {
    let bytes = 0;
    for (const column of steps.bytes) bytes += column[i];
    const at = Math.floor((steps.seconds[i] - first) / width);
    if (at !== bucket) {
      kept.push(i);
      bucket = at;
      fullest = bytes;
    } else if (bytes > fullest) {
      kept[kept.length - 1] = i;
      fullest = bytes;
    }
  }
  if (kept[kept.length - 1] !== total - 1) kept.push(total - 1);
  return kept;
}

function* csvRows(section: MemorySection, report: Report, names: string[]): Generator<CsvRow> {
  const header: CsvRow = ['run', 'replica', 'tensor_rank', 'rank', 'seconds'];
  yield [...header, ...section.classes];
  for (const series of section.series) {
    const steps = stepsOf(section, report, series);
    for (let i = 0; i < steps.seconds.length; i++) {
      const row: CsvRow = [names[series.run], series.replica, series.tensor_rank, series.rank, steps.seconds[i]];
      const bytes: CsvRow = section.classes.map(() => null);
      steps.classes.forEach((one, place) => (bytes[one] = steps.bytes[place][i]));
      yield [...row, ...bytes];
    }
  }
}

function stepsTable(section: MemorySection, steps: Steps): HTMLElement {
  const kept = thinned(steps, MOST_ROWS);
  const columns = [{label: 'Time', left: true}, ...steps.classes.map(one => ({label: classText(section.classes[one])})), {label: 'sum'}];
  const bytes = (value: number) => ({text: formatBytes(value), value});
  const cells = kept.map(step => {
    const row = steps.bytes.map(column => column[step]);
    return [{text: formatSeconds(steps.seconds[step]), value: steps.seconds[step]}, ...row.map(bytes),
            bytes(row.reduce((a, b) => a + b, 0))];
  });
  const what = kept.length < steps.seconds.length ? `; the fullest moment of each of ${MOST_ROWS} equal parts of the time` : '';
  return table(`Memory from that time on${what}`, columns, cells);
}

// Returns the last of the ascending `xs` that is not after x; null if all are.
function stepAt(xs: number[], x: number): number | null {
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low > 0 ? low - 1 : null;
}

class MemoryPlot {
  readonly element = h('div', {class: 'plot', role: 'img'});
  private plot: uPlot | null = null;
  private shown: MemorySeries | null = null;

  constructor(private section: MemorySection, private report: Report) {
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.element);
    onTheme(() => { if (this.shown) this.show(this.shown); });
  }

  private size() {
    const width = plotWidth(this.element);
    return {width, height: plotHeight(260, width)};
  }

  show(series: MemorySeries): void {
    this.shown = series;
    this.plot?.destroy();
    const steps = stepsOf(this.section, this.report, series);
    const kept = thinned(steps, MOST_DRAWN);
    const stacked: number[][] = [];
    const below = kept.map(() => 0);
    for (const column of steps.bytes) {
      kept.forEach((step, i) => (below[i] += column[step] / GIB));
      stacked.push([...below]);
    }
    const data = [kept.map(step => steps.seconds[step]), ...stacked.reverse()] as uPlot.AlignedData;
    const seconds = data[0] as number[];
    const top = [...steps.classes].reverse();
    const text = cssColor('--text'), grid = cssColor('--line');
    const axis = {stroke: text, font: fontOf(12), grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1}};
    const raw = (place: number, i: number) => {
      const upper = data[place + 1][i] as number;
      const lower = place + 2 < data.length ? (data[place + 2][i] as number) : 0;
      return formatBytes((upper - lower) * GIB);
    };
    const options: uPlot.Options = {
      ...this.size(),
      scales: {x: {time: false}, y: {range: (_plot, _low, high) => [0, (high || 1) * 1.08]}},
      axes: [{...axis, space: fontPixels(64), values: (_plot, ticks) => ticks.map(tick => formatTime(tick, Math.max(ticks[1] - ticks[0] || tick, 1e-12), ticks[ticks.length - 1]))},
             {...axis, size: fontPixels(72), values: (_plot, ticks) => ticks.map(tick => formatBytes(tick * GIB))}],
      // Uses the step that contains the pointer, not the nearest sample.
      cursor: {points: {show: false}, dataIdx: (_plot, _series, _nearest, x) => stepAt(seconds, x)},
      legend: {live: true},
      series: [{label: 'since', value: (_plot, value) => (value === null ? '' : formatSeconds(value))},
               ...top.map((one, place) => ({
                 label: classText(this.section.classes[one]), width: 0, fill: colorOf(this.section.classes[one]),
                 stroke: colorOf(this.section.classes[one]), points: {show: false},
                 paths: uPlot.paths.stepped!({align: 1}),
                 value: (_plot: uPlot, _value: number, _series: number, i: number | null) => (i === null ? '' : raw(place, i)),
               }))],
      hooks: {
        draw: [plot => this.markPeak(plot, series)],
        // uPlot shows no values if the whole view is inside one step.
        setCursor: [plot => {
          const {left = -1, idx} = plot.cursor;
          if (left >= 0 && idx === null) plot.setLegend({idx: stepAt(seconds, plot.posToVal(left, 'x')) ?? undefined}, false);
        }],
      },
    };
    this.element.setAttribute('aria-label',
      `Memory of rank ${series.rank} over time; its peak is ${formatBytes(series.peak_bytes)} at ${formatSeconds(series.peak_at_seconds)}`);
    this.plot = new uPlot(options, data, this.element);
  }

  private markPeak(plot: uPlot, series: MemorySeries): void {
    const x = plot.valToPos(series.peak_at_seconds, 'x', true), y = plot.valToPos(series.peak_bytes / GIB, 'y', true);
    const {left, top, width, height} = plot.bbox, context = plot.ctx;
    if (x < left - 1 || x > left + width + 1) return;
    const color = cssColor('--text'), ratio = devicePixelRatio;
    context.save();
    context.strokeStyle = context.fillStyle = color;
    context.setLineDash([4 * ratio, 3 * ratio]);
    context.beginPath();
    context.moveTo(x, top + height);
    context.lineTo(x, y);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.arc(x, y, 4 * ratio, 0, 2 * Math.PI);
    context.fill();
    context.font = fontOf(12 * ratio);
    const text = `peak ${formatBytes(series.peak_bytes)}`;
    const onLeft = x + context.measureText(text).width + 10 * ratio > left + width;
    context.textAlign = onLeft ? 'right' : 'left';
    context.textBaseline = 'bottom';
    context.fillText(text, x + (onLeft ? -7 : 7) * ratio, Math.max(y - 2 * ratio, top + 14 * ratio));
    context.restore();
  }
}

function timeChart(section: MemorySection, report: Report, names: string[]): HTMLElement | null {
  if (section.series.every(series => series.peak_bytes === 0)) return null;
  const plot = new MemoryPlot(section, report);
  const note = h('p', {class: 'note'});
  const label = (series: MemorySeries) =>
    `${names.length > 1 ? `${names[series.run]}, ` : ''}rank ${series.rank}` +
    (series.replica > 0 || series.tensor_rank > 0 ? `, replica ${series.replica}, tensor rank ${series.tensor_rank}` : '');
  const worst = section.series.reduce((best, series, i) =>
    (series.peak_bytes > section.series[best].peak_bytes ? i : best), 0);
  const box = details('Table');
  let shown = worst;
  const fill = () => {
    while (box.children.length > 1) box.lastChild!.remove();
    if (box.open) box.append(stepsTable(section, stepsOf(section, report, section.series[shown])));
  };
  box.addEventListener('toggle', fill);
  const show = (index: number) => {
    const series = section.series[index];
    shown = index;
    fill();
    plot.show(series);
    note.replaceChildren(name(label(series)), `: peak ${formatBytes(series.peak_bytes)} at ${formatSeconds(series.peak_at_seconds)}.`);
  };
  // After the element has a width.
  requestAnimationFrame(() => show(worst));
  return chart('Memory over time', 'Drag to zoom, double-click to see the whole run. The values at the pointer are shown below the plot, with the time since when they apply.',
               csvButton('memory over time', () => csvRows(section, report, names)),
               select('Rank', section.series.map(label), worst, show), note, plot.element, box);
}

export function memoryView(section: MemorySection, report: Report): HTMLElement | null {
  const names = report.header.runs.map(run => run.name);
  const charts = [timeChart(section, report, names), peaksChart(section, names)].filter(one => one !== null);
  if (charts.length === 0) charts.push(h('p', {class: 'note'}, 'No memory is known: the sizes of activations and weights are not given.'));
  return h('section', {id: 'memory'}, h('h2', {}, 'Memory'), ...charts);
}
