// SPDX-License-Identifier: Apache-2.0
// Utilization over time of the links that several pairs of GPUs use.
import {chart, csvButton, type CsvRow, h, name, select, table, type TableCell} from './dom.ts';
import {formatBytes, formatPercent, formatSeconds} from './format.ts';
import type {Report} from './load.ts';
import type {SharedLinksSection} from './model.ts';

type Run = NonNullable<SharedLinksSection['runs'][0]>;
type Link = Run['links'][0];

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 28;

// The utilization as an area of steps; the full height is the rate of the link.
function area(link: Link): SVGElement {
  const n = link.utilization.length;
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${n} ${HEIGHT}`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('class', 'link-area');
  svg.setAttribute('aria-hidden', 'true');
  const y = (value: number) => (HEIGHT * (1 - Math.min(value, 1))).toFixed(2);
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', `M0 ${HEIGHT}${link.utilization.map((value, i) => `V${y(value)}H${i + 1}`).join('')}V${HEIGHT}Z`);
  svg.append(path);
  return svg;
}

function rowsOf(run: Run): HTMLElement {
  const list = h('div', {class: 'bars', tabindex: 0, role: 'img', 'aria-label': 'Utilization of each link over time; the table has the means and peaks'});
  for (const link of run.links) {
    const track = h('div', {class: 'link-track', title: `${link.name}: mean ${formatPercent(link.mean)}, peak ${formatPercent(link.peak)}`});
    track.append(area(link));
    list.append(h('div', {class: 'bar-row'}, h('span', {class: 'bar-label', title: link.name}, name(link.name)), track,
                  h('span', {class: 'bar-text'}, `${formatPercent(link.mean)}`)));
  }
  const end = run.from_seconds + run.interval_seconds * (run.links[0]?.utilization.length ?? 0);
  return h('div', {}, list, h('div', {class: 'bar-row link-ends'}, h('span'),
    h('div', {}, h('span', {}, formatSeconds(run.from_seconds)), h('span', {}, formatSeconds(end))), h('span', {class: 'bar-text'}, 'mean')));
}

function* csvRows(run: Run): Iterable<CsvRow> {
  yield ['from_seconds', ...run.links.map(link => link.name)];
  for (let i = 0; i < run.links[0].utilization.length; i++) {
    yield [run.from_seconds + i * run.interval_seconds, ...run.links.map(link => link.utilization[i])];
  }
}

export function sharedLinksView(section: SharedLinksSection, report: Report): HTMLElement | null {
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run] !== null);
  if (known.length === 0) return null;
  let chosen = known[0];
  const host = section.runs.some(run => run?.links.some(link => link.host_bytes > 0));
  const columns = [{label: 'Link', left: true}, {label: 'Mean'}, {label: 'Peak'}, {label: 'Pairs of GPUs'}, {label: 'Transfers'}, {label: 'Collectives'},
    ...(host ? [{label: 'Host copies'}] : []), {label: 'Rate of the link'}];
  let cells: TableCell[][] = [];
  const body = h('div');
  const show = () => {
    const run = section.runs[chosen]!;
    cells = run.links.map(link => [link.name, {text: formatPercent(link.mean), value: link.mean}, {text: formatPercent(link.peak), value: link.peak},
      {text: String(link.num_pairs), value: link.num_pairs}, ...[link.transfer_bytes, link.collective_bytes, ...(host ? [link.host_bytes] : [])].map(value => ({text: formatBytes(value), value})),
      {text: `${formatBytes(link.bytes_per_second)}/s`, value: link.bytes_per_second}]);
    body.replaceChildren(rowsOf(run), table('Links that several pairs of GPUs use', columns, cells));
    if (run.num_left_out > 0) body.append(h('p', {class: 'note'}, `${run.num_left_out} less used links are not shown.`));
  };
  show();
  return h('section', {id: 'shared-links'}, h('h2', {}, 'Shared links'),
    chart('Utilization over time', 'Links that transfers and collectives of several pairs of GPUs use, busiest first; the height is the part of the link\u2019s rate.',
          csvButton('the utilization of links over time', () => csvRows(section.runs[chosen]!)),
          known.length > 1 ? select('Run', known.map(run => report.header.runs[run].name), 0, i => { chosen = known[i]; show(); }) : null, body));
}
