// SPDX-License-Identifier: Apache-2.0
// The rates of kernels against the limits of the device.
import {chart, csvButton, csvOfTable, details, h, select, table, type TableCell} from './dom.ts';
import {formatBytes, formatCount, formatPercent, formatSeconds} from './format.ts';
import type {Report} from './load.ts';
import type {RooflineSection} from './model.ts';
import {Scatter, seriesLegend} from './scatter.ts';

type Run = NonNullable<RooflineSection['runs'][0]>;

const flops = (value: number) => `${formatCount(value / 1e12)} TFLOP/s`;
const partText = (part: string) => part.replaceAll('_', ' ');
const percent = (value: number | null): TableCell => (value === null ? '-' : {text: formatPercent(value), value});
// Colors and shapes tell this many parts apart; the others share the last one.
const MOST_SERIES = 7;

function pointsOf(run: Run) {
  const computing = run.parts.filter(part => part.flops_per_second > 0).map(part => part.part);
  const names = computing.slice(0, MOST_SERIES);
  if (computing.length > MOST_SERIES) names.push('other');
  const points = run.kernels.filter(kernel => kernel.flops > 0 && kernel.bytes > 0).map(kernel => {
    const place = names.indexOf(kernel.part), rate = kernel.flops / kernel.seconds, intensity = kernel.flops / kernel.bytes;
    return {x: intensity, y: rate, series: place < 0 ? names.length - 1 : place,
            text: `${partText(kernel.part)}: ${flops(rate)} at ${formatCount(intensity)} FLOP/byte, ${formatSeconds(kernel.seconds)}, `
                + `${formatCount(kernel.count)} in a microbatch`};
  });
  return {names: names.map(partText), points};
}

// The lower of the peak and of FLOP per byte x bandwidth, as lines.
function roofs(run: Run, low: number, high: number): [number, number][][] {
  return run.peaks.map(({flops_per_second: peak}) => {
    const ridge = peak / run.memory_bytes_per_second;
    const from = Math.min(low, ridge / 2), to = Math.max(high, ridge * 2);
    return [[from, from * run.memory_bytes_per_second], [ridge, peak], [to, peak]];
  });
}

export function rooflineView(section: RooflineSection, report: Report): HTMLElement | null {
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run] !== null);
  if (known.length === 0) return null;
  let chosen = known[0];
  const scatter = new Scatter();
  const columns = [{label: 'Kernels', left: true}, {label: 'Part of their time'}, {label: 'Time'}, {label: 'Number'}, {label: 'FLOP/s'},
                   {label: 'Of the peak'}, {label: 'Bytes/s'}, {label: 'Of the bandwidth'}, {label: 'Of the roof'}];
  let cells: TableCell[][] = [];
  const body = h('div'), note = h('p', {class: 'note'});
  const show = () => {
    const run = section.runs[chosen]!;
    cells = run.parts.map(part => [partText(part.part), percent(part.seconds_ratio), {text: formatSeconds(part.seconds), value: part.seconds},
      {text: formatCount(part.count), value: part.count},
      part.flops_per_second > 0 ? {text: flops(part.flops_per_second), value: part.flops_per_second} : '-',
      part.flops_per_second > 0 ? percent(part.flops_ratio) : '-',
      {text: `${formatBytes(part.bytes_per_second)}/s`, value: part.bytes_per_second}, percent(part.bytes_ratio), percent(part.roof_ratio)]);
    const peaks = run.peaks.map(peak => `${flops(peak.flops_per_second)} in ${peak.format}`).join(', ');
    note.textContent = `${run.device}: ${peaks}, ${formatBytes(run.memory_bytes_per_second)}/s of memory.`;
    const {names, points} = pointsOf(run);
    body.replaceChildren();
    if (points.length > 0) {
      const intensities = points.map(point => point.x);
      scatter.show({
        label: 'FLOP per second over FLOP per byte of each kernel', series: names, points, height: 380,
        x: {label: 'FLOP per byte', format: formatCount, log: true}, y: {label: 'TFLOP/s', format: value => formatCount(value / 1e12), log: true},
        lines: roofs(run, Math.min(...intensities), Math.max(...intensities)).map(line => ({points: line})),
      });
      body.append(scatter.element, seriesLegend(names));
    }
    body.append(table('Kernels of one microbatch by part', columns, cells));
  };
  show();
  return h('section', {id: 'roofline'}, h('h2', {}, 'Kernels'),
    chart('Roofline', 'Kernels of the passes of one microbatch, over all stages. The roof is the lower of the peak FLOP/s and FLOP per byte times the memory bandwidth.',
          csvButton('the rates of kernels', () => csvOfTable(columns, cells)),
          known.length > 1 ? select('Run', known.map(run => report.header.runs[run].name), 0, i => { chosen = known[i]; show(); }) : null,
          note, body),
    details('What the columns mean', h('p', {}, 'Of the peak and of the bandwidth: the rate over the highest peak of the device, and over its memory bandwidth. '
      + 'Of the roof: the FLOP/s over the roof at the FLOP per byte of these kernels. Kernels without FLOP move data only.')));
}
