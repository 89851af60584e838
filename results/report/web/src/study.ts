// SPDX-License-Identifier: Apache-2.0
// Losses of a small model trained under several schedules.
import uPlot from 'uplot';

import {chart, csvButton, csvOfTable, type CsvRow, h, select, table, type TableCell} from './dom.ts';
import {formatCount, formatPercent, formatSeconds} from './format.ts';
import type {StudySection} from './model.ts';
import {seriesColor} from './palette.ts';
import {seriesLegend} from './scatter.ts';
import {cssColor, fontOf, fontPixels, onTheme, plotHeight} from './theme.ts';

type Schedule = StudySection['result']['schedules'][0];

// The mean over seeds of each batch, averaged over the last twentieth of the
// run as results/views/train_study.h describes.
export function smoothed(schedule: Schedule): number[] {
  const curves = (schedule.curves ?? []).map(curve => curve.losses);
  const length = curves.reduce((a, losses) => Math.max(a, losses.length), 0);
  const mean = Array.from({length}, (_, i) => {
    const values = curves.filter(losses => i < losses.length).map(losses => losses[i] ?? NaN);
    return values.reduce((a, b) => a + b, 0) / values.length;
  });
  const window = Math.max(1, Math.floor(length / 20));
  return mean.map((_, i) => {
    const part = mean.slice(Math.max(0, i - window + 1), i + 1);
    return part.reduce((a, b) => a + b, 0) / part.length;
  });
}

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 4]];

class Curves {
  readonly element = h('div', {class: 'plot', role: 'img'});
  private plot: uPlot | null = null;
  private axis = 0;

  constructor(private section: StudySection, private curves: number[][]) {
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.element);
    onTheme(() => this.redraw());
  }

  private size() {
    const width = Math.max(this.element.clientWidth, 200);
    return {width, height: plotHeight(340, width)};
  }

  show(axis: number): void {
    this.axis = axis;
    this.element.setAttribute('aria-label', `Loss of each schedule over ${axis === 0 ? 'samples' : 'seconds'}; the table has the results`);
    requestAnimationFrame(() => this.redraw());
  }

  private redraw(): void {
    if (!this.element.isConnected) return;
    this.plot?.destroy();
    const {schedules, samples_per_batch, target_loss} = this.section.result;
    const tables = this.curves.map((losses, i) => [
      losses.map((_, batch) => (batch + 1) * (this.axis === 0 ? samples_per_batch : schedules[i].batch_seconds)),
      losses.map(loss => (Number.isFinite(loss) ? loss : null))] as uPlot.AlignedData).filter(one => one[0].length > 0);
    if (tables.length === 0) return;
    const text = cssColor('--text'), grid = cssColor('--line');
    const axis = {stroke: text, grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1}, font: fontOf(12), labelFont: fontOf(12), labelSize: fontPixels(18)};
    const format = this.axis === 0 ? formatCount : formatSeconds;
    const options: uPlot.Options = {
      ...this.size(),
      scales: {x: {time: false}},
      axes: [{...axis, label: this.axis === 0 ? 'samples' : 'seconds of training, simulated', space: fontPixels(64), values: (_plot, ticks) => ticks.map(format)},
             {...axis, label: 'loss', size: fontPixels(64)}],
      cursor: {points: {show: false}},
      legend: {show: false},
      series: [{}, ...schedules.filter((_, i) => this.curves[i].length > 0).map((schedule, i) => ({
        label: schedule.schedule, stroke: seriesColor(schedules.indexOf(schedule)), width: 2, dash: DASHES[i % DASHES.length],
        spanGaps: true, points: {show: false}}))],
      hooks: {draw: target_loss === null ? [] : [plot => {
        const y = plot.valToPos(target_loss, 'y', true), {left, width, top, height} = plot.bbox;
        if (y < top || y > top + height) return;
        plot.ctx.save();
        plot.ctx.strokeStyle = cssColor('--muted');
        plot.ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
        plot.ctx.beginPath();
        plot.ctx.moveTo(left, y);
        plot.ctx.lineTo(left + width, y);
        plot.ctx.stroke();
        plot.ctx.restore();
      }]},
    };
    this.plot = new uPlot(options, uPlot.join(tables), this.element);
  }
}

function* lossRows(section: StudySection): Generator<CsvRow> {
  yield ['schedule', 'seed', 'batch', 'samples', 'seconds', 'loss'];
  for (const schedule of section.result.schedules) {
    for (const curve of schedule.curves ?? []) {
      for (let i = 0; i < curve.losses.length; i++) {
        yield [schedule.schedule, curve.seed, i, (i + 1) * section.result.samples_per_batch, (i + 1) * schedule.batch_seconds, curve.losses[i]];
      }
    }
  }
}

export function studyView(section: StudySection): HTMLElement {
  const {schedules, target_loss} = section.result;
  const curves = schedules.map(smoothed);
  const plot = new Curves(section, curves);
  plot.show(0);
  const number = (value: number | null | undefined, format: (value: number) => string) =>
    (typeof value === 'number' ? {text: format(value), value} : '-');
  const loss = (value: number) => String(Number(value.toPrecision(4)));
  const columns = [{label: 'Schedule', left: true}, {label: 'Final loss'}, {label: 'Spread over seeds'}, {label: 'Samples to target'},
                   {label: 'Time to target'}, {label: 'Step time'}, {label: 'Idle'}, {label: 'Weight versions'}, {label: 'Staleness'}, {label: 'Weights', left: true}];
  const cells: TableCell[][] = schedules.map(one => [one.schedule, number(one.final_loss, loss), number(one.final_spread, loss),
    number(one.samples_to_target, formatCount), number(one.seconds_to_target, formatSeconds), number(one.batch_seconds, formatSeconds),
    number(one.idle_ratio, formatPercent), number(one.weight_versions, String), number(one.staleness_updates, String), one.semantics]);
  const losses = [{label: 'Batch', left: true}, ...schedules.map(one => ({label: one.schedule}))];
  const most = Math.max(0, ...curves.map(curve => curve.length)), step = Math.max(1, Math.ceil(most / 50));
  const lossCells: TableCell[][] = [];
  for (let i = step - 1; i < most; i += step) {
    lossCells.push([{text: String(i), value: i}, ...curves.map(curve => number(curve[i], loss))]);
  }
  return h('section', {id: 'study'}, h('h2', {}, 'Training study'),
    chart('Loss', `Mean over seeds, smoothed over a twentieth of the batches.${target_loss === null ? '' : ` Dashed: the lowest loss that all reach, ${loss(target_loss)}.`}`,
          csvButton('the loss of every batch', () => lossRows(section)),
          h('div', {class: 'controls'}, select('Across', ['samples', 'seconds'], 0, i => plot.show(i))),
          plot.element, seriesLegend(schedules.map(one => one.schedule), DASHES),
          h('details', {}, h('summary', {}, 'Table'), table('Smoothed loss', losses, lossCells))),
    chart('Results', '', csvButton('results of the study', () => csvOfTable(columns, cells)), table('Results of each schedule', columns, cells)));
}
