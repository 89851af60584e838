// SPDX-License-Identifier: Apache-2.0
// How much delay the passes and transfers of each rank absorb.
import {chart, csvButton, csvOfTable, details, h, select, style, table, type TableCell} from './dom.ts';
import {formatPercent, formatSeconds} from './format.ts';
import type {Report} from './load.ts';
import type {SlackSection} from './model.ts';
import {heat, heatPart} from './palette.ts';
import {onTheme} from './theme.ts';

type Row = SlackSection['runs'][0]['rows'][0];

interface Metric {
  label: string;
  of: (row: Row) => number;
  text: (value: number) => string;
}

const METRICS: Metric[] = [
  {label: 'median slack', of: row => row.median_seconds, text: formatSeconds},
  {label: 'largest slack', of: row => row.largest_seconds, text: formatSeconds},
  {label: 'part that is critical', of: row => row.num_critical / row.count, text: formatPercent},
];
const ORDER = ['F', 'B', 'I', 'W', 'send F', 'send B'];
const TEXTS: Record<string, string> = {F: 'forward', B: 'backward', I: 'input gradient', W: 'weight gradient'};

export function slackView(section: SlackSection, report: Report): HTMLElement | null {
  const names = report.header.runs.map(run => run.name);
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run].rows.length > 0);
  if (known.length === 0) return null;
  let chosen = known[0], metric = METRICS[0];
  const columns = [{label: 'Rank', left: true}, {label: 'Of', left: true}, {label: 'Number'}, {label: 'Critical'}, {label: 'Median slack'},
                   {label: 'Largest slack'}, {label: 'Largest, of a step'}];
  let cells: TableCell[][] = [];
  const body = h('div');
  const show = () => {
    const {rows, is_exact, batch_seconds} = section.runs[chosen];
    const number = (value: number, text: string) => ({text, value});
    cells = rows.map(row => [number(row.rank, `rank ${row.rank}`), row.what, number(row.count, String(row.count)), number(row.num_critical, String(row.num_critical)),
      number(row.median_seconds, formatSeconds(row.median_seconds)), number(row.largest_seconds, formatSeconds(row.largest_seconds)),
      batch_seconds > 0 ? number(row.largest_seconds / batch_seconds, formatPercent(row.largest_seconds / batch_seconds)) : '-']);
    const ranks = [...new Set(rows.map(row => row.rank))], whats = ORDER.filter(what => rows.some(row => row.what === what));
    const low = rows.reduce((a, row) => Math.min(a, metric.of(row)), Infinity), high = rows.reduce((a, row) => Math.max(a, metric.of(row)), -Infinity);
    const heads = [{label: 'rank', left: true}, ...whats.map(what => ({label: TEXTS[what] ? `${what}: ${TEXTS[what]}` : what}))];
    const map = table(`${metric.label[0].toUpperCase()}${metric.label.slice(1)} by rank and operation`, heads, ranks.map(rank => [
      {text: String(rank), value: rank}, ...whats.map((what): TableCell => {
        const row = rows.find(one => one.rank === rank && one.what === what);
        if (!row) return '-';
        const value = metric.of(row), element = h('span', {class: 'heat'}, metric.text(value));
        element.title = `${row.count}, ${row.num_critical} of them critical`;
        const {background, text} = heat(heatPart(value, low, high));
        style(element, {background, color: text});
        return {text: metric.text(value), value, element};
      })]), false);
    map.classList.add('heat-map');
    body.replaceChildren(...(is_exact ? [] : [h('p', {class: 'note'}, 'Transfers share links or slow passes down, so the slack assumes that all other durations remain.')]),
                         map, details('Table', table('Slack of the passes and transfers of each rank', columns, cells)));
  };
  show();
  onTheme(show);
  return h('section', {id: 'slack'}, h('h2', {}, 'Slack'),
    chart('Slack by rank', 'How much longer one pass or transfer may take before the run ends later; critical ones have no slack. Of the first pipeline.',
          csvButton('the slack of each rank', () => csvOfTable(columns, cells)),
          h('div', {class: 'controls'},
            known.length > 1 ? select('Run', known.map(run => names[run]), 0, i => { chosen = known[i]; show(); }) : null,
            select('Show', METRICS.map(one => one.label), 0, i => { metric = METRICS[i]; show(); })), body));
}
