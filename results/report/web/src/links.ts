// SPDX-License-Identifier: Apache-2.0
// Use of the connections between ranks.
import {bars} from './bars.ts';
import {chart, csvButton, csvOfTable, details, h, select, table, type TableCell} from './dom.ts';
import {formatBytes, formatPercent, formatSeconds} from './format.ts';
import type {Report} from './load.ts';
import type {LinksSection} from './model.ts';

const MOST_BARS = 64;

export function linksView(section: LinksSection, report: Report): HTMLElement | null {
  const names = report.header.runs.map(run => run.name);
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run].length > 0);
  if (known.length === 0) return null;
  let chosen = known[0];
  const columns = [{label: 'Connection', left: true}, {label: 'In use'}, {label: 'Time in use'}, {label: 'Transfers'}, {label: 'Bytes'},
                   {label: 'Bytes per second in use'}];
  let cells: TableCell[][] = [];
  const body = h('div');
  const show = () => {
    const links = section.runs[chosen];
    const label = (link: typeof links[0]) => `${link.from_rank} to ${link.to_rank}`;
    cells = links.map((link, i) => [{text: label(link), value: i}, {text: formatPercent(link.utilization), value: link.utilization},
      {text: formatSeconds(link.busy_seconds), value: link.busy_seconds}, {text: String(link.count), value: link.count},
      {text: formatBytes(link.bytes), value: link.bytes},
      link.bytes_per_second === null ? '-' : {text: `${formatBytes(link.bytes_per_second)}/s`, value: link.bytes_per_second}]);
    const busiest = [...links].sort((a, b) => b.utilization - a.utilization).slice(0, MOST_BARS);
    const shown = links.filter(link => busiest.includes(link));
    body.replaceChildren(
      bars('Part of the run in which each connection is in use', shown.map(link => ({
        label: label(link), text: formatPercent(link.utilization),
        parts: [{label: `${link.count} transfers, ${formatBytes(link.bytes)}`, color: '#0072B2', value: link.utilization,
                 text: formatPercent(link.utilization)}]})), {value: 1, text: 'the whole run'}),
      details('Table', table('Connections between ranks', columns, cells)));
  };
  show();
  return h('section', {id: 'links'}, h('h2', {}, 'Links'),
    chart('Connections between ranks', 'The part of the run with a transfer on the wire, from rank to rank, of the first pipeline.',
          csvButton('connections', () => csvOfTable(columns, cells)),
          known.length > 1 ? select('Run', known.map(run => names[run]), 0, i => { chosen = known[i]; show(); }) : null, body));
}
