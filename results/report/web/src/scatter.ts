// SPDX-License-Identifier: Apache-2.0
// Points with intervals, drawn with uPlot's axes. A table next to it has the
// same values.
import uPlot from 'uplot';

import {h} from './dom.ts';
import {niceStep} from './format.ts';
import {drawShape, seriesColor, seriesShape} from './palette.ts';
import {cssColor, fontOf, fontPixels, onTheme, plotHeight, plotWidth} from './theme.ts';

export interface ScatterPoint {
  x: number;
  y: number;
  low?: number;  // of y
  high?: number;
  lowX?: number;
  highX?: number;
  series: number;
  text: string;  // shown when it is pointed at
  large?: boolean;
}

export interface ScatterAxis {
  label: string;
  // `step`: the distance of ticks, if the value is one.
  format: (value: number, step?: number) => string;
  log?: boolean;
  zero?: boolean;  // begins at 0
  names?: string[];  // of the values 0, 1, ...
  bytes?: boolean;  // ticks are round in powers of 1024
}

export interface ScatterLine {
  points: [x: number, y: number][];
  dash?: boolean;
}

export interface ScatterData {
  label: string;
  points: ScatterPoint[];
  series: string[];
  x: ScatterAxis;
  y: ScatterAxis;
  lines?: ScatterLine[];
  height?: number;
  square?: boolean;  // both axes have the same range
}

const HINT = 'Point at a point to read it. Drag to zoom across, double-click to see all of them.';
const MOST_TURNED = 26;  // characters
const TURNED_WIDTH = 5;  // pixels of a turned character

// Returns the range of the values with a margin.
function rangeOf(values: number[], axis: ScatterAxis): [number, number] {
  const known = values.filter(value => Number.isFinite(value) && (!axis.log || value > 0));
  if (known.length === 0) return axis.log ? [1, 10] : [0, 1];
  let low = known.reduce((a, b) => Math.min(a, b)), high = known.reduce((a, b) => Math.max(a, b));
  if (axis.names) return [-0.6, axis.names.length - 0.4];
  if (axis.log) {
    const margin = Math.max((high / low) ** 0.05, 1.05);
    return [low / margin, high * margin];
  }
  if (axis.zero) low = Math.min(low, 0);
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  high += margin;
  return [axis.zero && low === 0 ? 0 : low - margin, high];
}

// Splits of a logarithmic axis: 1, 2 and 5 times powers of ten.
function logSplits(low: number, high: number, most: number): number[] {
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const splits: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (value >= low && value <= high) splits.push(value);
      }
    }
    if (splits.length <= most || factors.length === 1) {
      if (splits.length >= 2) return splits;
      break;
    }
  }
  // Less than a decade: round steps.
  for (let parts = Math.min(most, 5);; parts++) {
    const step = niceStep((high - low) / parts), splits: number[] = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) splits.push(i * step);
    if (splits.length >= 2 || parts >= 10) return splits;
  }
}

// Returns names that fit below their values: without the words that all of them
// begin with, and cut at the end if they are still longer than `most`.
function shortNames(names: string[], most: number): string[] {
  if (names.every(text => text.length <= most)) return names;
  const words = names.map(text => text.split(' '));
  let same = 0;
  while (names.length > 1 && words.every(list => list.length > same + 1 && list[same] === words[0][same])) same++;
  return words.map(list => {
    const text = (same > 0 ? '\u2026' : '') + list.slice(same).join(' ');
    return text.length > most ? `${text.slice(0, most - 1)}\u2026` : text;
  });
}

// Splits that are round in KiB, MiB, GiB or TiB.
function byteSplits(low: number, high: number, most: number): number[] {
  const unit = [2 ** 40, 2 ** 30, 2 ** 20, 2 ** 10, 1].find(size => high >= size) ?? 1;
  const step = niceStep((high - low) / most / unit) * unit;
  const splits: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) splits.push(i * step);
  return splits;
}

// Returns the width of a vertical axis with these texts.
function widthOf(texts: string[]): number {
  const longest = texts.reduce((most, text) => Math.max(most, text.length), 6);
  return fontPixels(20 + 7 * longest);
}

export class Scatter {
  readonly element: HTMLElement;
  private readonly plotBox: HTMLElement;
  private readonly near = h('p', {class: 'note plot-near', 'aria-live': 'off'});
  private plot: uPlot | null = null;
  private data: ScatterData | null = null;

  constructor() {
    this.plotBox = h('div', {class: 'plot', role: 'img'});
    this.element = h('div', {class: 'scatter'}, this.plotBox, this.near);
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.plotBox);
    onTheme(() => this.redraw());
  }

  private size() {
    const available = plotWidth(this.plotBox);
    const square = this.data?.square ?? false;
    const height = plotHeight(this.data?.height ?? 320, square ? 1.5 * available : available);
    // Equal steps of both axes of a square plot have similar lengths.
    return {width: square ? Math.min(available, 2 * height) : available, height};
  }

  show(data: ScatterData): void {
    this.data = data;
    this.plotBox.setAttribute('aria-label', `${data.label}; the table has the same values`);
    // After the element has a width.
    requestAnimationFrame(() => this.redraw());
  }

  private redraw(): void {
    const data = this.data;
    if (!data || !this.plotBox.isConnected) return;
    this.plot?.destroy();
    this.near.textContent = data.x.names ? '' : HINT;
    const sorted = [...data.points].sort((a, b) => a.x - b.x);
    const inLines = (data.lines ?? []).flatMap(line => line.points);
    let xRange = rangeOf([...sorted.flatMap(one => [one.x, one.lowX ?? one.x, one.highX ?? one.x]),
                          ...inLines.map(([x]) => x)], data.x);
    let yRange = rangeOf([...sorted.flatMap(one => [one.y, one.low ?? one.y, one.high ?? one.y]),
                          ...inLines.map(([, y]) => y)], data.y);
    if (data.square) {
      xRange = [Math.min(xRange[0], yRange[0]), Math.max(xRange[1], yRange[1])];
      yRange = xRange;
    }
    const text = cssColor('--text'), grid = cssColor('--line');
    const width = this.size().width;
    const axisOf = (axis: ScatterAxis, vertical: boolean): uPlot.Axis => {
      const named = axis.names !== undefined;
      // Long names are turned.
      const count = Math.max(axis.names?.length ?? 1, 1);
      const longest = Math.max(4, Math.floor(width / count / 8));
      const turned = named && !vertical && axis.names!.some(text => text.length > longest);
      // They end below their values; the first one needs room on its left.
      const most = Math.max(8, Math.min(MOST_TURNED, Math.floor((72 + (width - 80) / count / 2) / TURNED_WIDTH)));
      const names = shortNames(axis.names ?? [], turned ? most : longest);
      const height = turned ? 30 + 4.6 * names.reduce((most, text) => Math.max(most, text.length), 0) : 44;
      const room = vertical ? 8 : Math.max(3, Math.floor(width / 90));
      return {
        stroke: text, label: axis.label, labelSize: fontPixels(18), font: fontOf(12), labelFont: fontOf(12), labelGap: 2,
        space: vertical ? 36 : width < 500 ? 64 : 90,
        grid: {stroke: grid, width: 1, show: !named}, ticks: {stroke: grid, width: 1},
        size: vertical ? (_plot, texts) => widthOf(texts ?? []) : fontPixels(named ? height : 34),
        ...(turned ? {rotate: 40} : {}),
        ...(named ? {splits: () => axis.names!.map((_, i) => i)} : {}),
        ...(axis.log ? {splits: (_plot: uPlot, _i: number, low: number, high: number) => logSplits(low, high, room)} : {}),
        ...(axis.bytes ? {splits: (_plot: uPlot, _i: number, low: number, high: number) => byteSplits(low, high, room)} : {}),
        filter: (_plot, splits) => splits,
        values: (_plot, splits) => splits.map((value, i) => {
          if (value === null) return '';
          if (named) return names[value] ?? '';
          if (axis.log || splits.length < 2) return axis.format(value);
          return axis.format(value, Math.abs(splits[i > 0 ? i - 1 : 1] - value));
        }),
      };
    };
    const options: uPlot.Options = {
      ...this.size(),
      scales: {x: {time: false, distr: data.x.log ? 3 : 1, range: (_plot, low, high) => (this.zoomed(low, high, sorted) ? [low, high] : xRange)},
               y: {distr: data.y.log ? 3 : 1, range: () => yRange}},
      axes: [axisOf(data.x, false), axisOf(data.y, true)],
      cursor: {points: {show: false}, drag: {x: data.x.names === undefined, y: false}},
      legend: {show: false},
      series: [{}, {paths: () => null, points: {show: false}}],
      hooks: {draw: [plot => this.paint(plot, data)], setCursor: [plot => this.pointAt(plot, data)]},
    };
    const xs = sorted.map(one => one.x), ys = sorted.map(one => one.y);
    this.plot = new uPlot(options, [xs, ys] as uPlot.AlignedData, this.plotBox);
  }

  // Whether the user chose this part of the horizontal axis.
  private zoomed(low: number, high: number, sorted: ScatterPoint[]): boolean {
    return sorted.length > 0 && (low !== sorted[0].x || high !== sorted[sorted.length - 1].x) && this.plot !== null && low < high;
  }

  private paint(plot: uPlot, data: ScatterData): void {
    const context = plot.ctx, ratio = devicePixelRatio, {left, top, width, height} = plot.bbox;
    const at = (x: number, y: number): [number, number] => [plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true)];
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.lineWidth = 1.5 * ratio;
    context.strokeStyle = cssColor('--muted');
    for (const line of data.lines ?? []) {
      context.setLineDash(line.dash ? [5 * ratio, 4 * ratio] : []);
      context.beginPath();
      line.points.forEach(([x, y], i) => (i === 0 ? context.moveTo(...at(x, y)) : context.lineTo(...at(x, y))));
      context.stroke();
    }
    context.setLineDash([]);
    const many = data.points.length > 300;
    for (const point of data.points) {
      if (!Number.isFinite(point.x) || !Number.isFinite(point.y)) continue;
      const [x, y] = at(point.x, point.y);
      context.strokeStyle = context.fillStyle = seriesColor(point.series);
      context.lineWidth = ratio;
      const bar = (from: [number, number], to: [number, number]) => {
        context.beginPath();
        context.moveTo(...from);
        context.lineTo(...to);
        context.stroke();
      };
      context.globalAlpha = 0.55;
      if (point.low !== undefined && point.high !== undefined) bar(at(point.x, point.low), at(point.x, point.high));
      if (point.lowX !== undefined && point.highX !== undefined) bar(at(point.lowX, point.y), at(point.highX, point.y));
      context.globalAlpha = many ? 0.7 : 1;
      drawShape(context, seriesShape(point.series), x, y, fontPixels(point.large ? 7 : many ? 3 : 4.5) * ratio);
      context.globalAlpha = 1;
    }
    context.restore();
  }

  private pointAt(plot: uPlot, data: ScatterData): void {
    const {left, top} = plot.cursor;
    if (left === undefined || top === undefined || left < 0) return;
    let best: ScatterPoint | null = null, distance = 40;
    for (const point of data.points) {
      const away = Math.hypot(plot.valToPos(point.x, 'x') - left, plot.valToPos(point.y, 'y') - top);
      if (away < distance) {
        distance = away;
        best = point;
      }
    }
    this.near.textContent = best?.text ?? (data.x.names ? '' : HINT);
  }
}

// The names of series with their colors and shapes, or the dashes of their
// lines.
export function seriesLegend(names: string[], dashes?: number[][]): HTMLElement {
  const list = h('ul', {class: 'legend'});
  const fill = () => list.replaceChildren(...names.map((text, i) => {
    const canvas = h('canvas', {width: 28, height: 28, class: 'shape', 'aria-hidden': 'true'});
    const context = canvas.getContext('2d')!;
    context.fillStyle = context.strokeStyle = seriesColor(i);
    if (dashes) {
      context.lineWidth = 6;
      context.setLineDash(dashes[i % dashes.length]);
      context.beginPath();
      context.moveTo(0, 14);
      context.lineTo(28, 14);
      context.stroke();
    } else {
      drawShape(context, seriesShape(i), 14, 14, 9);
    }
    return h('li', {}, canvas, h('bdi', {class: text.length > 60 ? 'name long' : 'name'}, text));
  }));
  fill();
  onTheme(fill);
  return list;
}
