// SPDX-License-Identifier: Apache-2.0
// Idle time by cause, of each rank of the first pipeline.
import {bars, type Part} from './bars.ts';
import {chart, csvButton, csvOfTable, details, h, legend, select, table, type TableCell} from './dom.ts';
import {formatBytes, formatPercent, formatSeconds} from './format.ts';
import {BUSY_COLOR, CAUSE_TEXTS, DRAIN, FIRST_IDLE, KINDS} from './kinds.ts';
import type {Report} from './load.ts';
import type {IdleSection} from './model.ts';
import {isDark, onTheme} from './theme.ts';

type Rank = IdleSection['runs'][0]['ranks'][0];

const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);

function causeColor(kind: number): string {
  return isDark() ? KINDS[kind].dark : KINDS[kind].light;
}

function partsOf(rank: Rank, causes: string[]): Part[] {
  const part = (label: string, color: string, value: number): Part => ({label, color, value, text: formatSeconds(value)});
  return [part('busy', BUSY_COLOR, rank.busy),
          ...causes.map((cause, i) => part(cause, causeColor(FIRST_IDLE + i), rank.startup[i] + rank.between[i])),
          part('drain', causeColor(DRAIN), rank.drain)];
}

function mean(ranks: Rank[]): Rank {
  const of = (get: (rank: Rank) => number) => sum(ranks.map(get)) / ranks.length;
  return {
    rank: -1,
    busy: of(rank => rank.busy),
    startup: ranks[0].startup.map((_, i) => of(rank => rank.startup[i])),
    between: ranks[0].between.map((_, i) => of(rank => rank.between[i])),
    drain: of(rank => rank.drain),
  };
}

function idleTable(causes: string[], ranks: Rank[], makespan: number) {
  const columns = [{label: 'Rank', left: true}, {label: 'busy'},
                   ...causes.map(cause => ({label: `start-up: ${cause}`})),
                   ...causes.map(cause => ({label: `between: ${cause}`})),
                   {label: 'drain'}, {label: 'sum'}, {label: 'run'}];
  const cell = (value: number) => ({text: formatSeconds(value), value});
  const rows: TableCell[][] = ranks.map(rank => [
    {text: `rank ${rank.rank}`, value: rank.rank}, cell(rank.busy), ...rank.startup.map(cell), ...rank.between.map(cell),
    cell(rank.drain), cell(rank.busy + sum(rank.startup) + sum(rank.between) + rank.drain), cell(makespan)]);
  return {columns, rows};
}

function idleChart(section: IdleSection, names: string[]): HTMLElement | null {
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run].ranks.length > 0);
  if (known.length === 0) return null;
  let chosen = known[0];
  const body = h('div');
  let data = idleTable([], [], 0);
  const show = () => {
    const run = section.runs[chosen];
    const makespan = run.makespan_seconds!;
    data = idleTable(section.causes, run.ranks, makespan);
    const average = mean(run.ranks);
    const used = section.causes.map((_, i) => i).filter(i => average.startup[i] + average.between[i] > 0);
    body.replaceChildren(
      bars('Busy and idle time of each rank', [average, ...run.ranks].map(rank => ({
        label: rank.rank < 0 ? 'mean' : `rank ${rank.rank}`,
        text: `${formatPercent(1 - rank.busy / makespan)} idle`,
        parts: partsOf(rank, section.causes),
      }))),
      legend([['busy', BUSY_COLOR],
              ...used.map(i => [`${section.causes[i]}: ${CAUSE_TEXTS[section.causes[i]] ?? ''}`, causeColor(FIRST_IDLE + i)] as [string, string]),
              ['drain: after its last action', causeColor(DRAIN)]]),
      details('Table', table('Busy and idle time of each rank by cause', data.columns, data.rows)));
  };
  show();
  onTheme(show);
  return chart('Idle time by cause',
               'Of each rank of the first pipeline over the whole run. Every idle moment has one cause; busy and idle time add up to the run.',
               csvButton('idle time by cause', () => csvOfTable(data.columns, data.rows)),
               known.length > 1 ? select('Run', known.map(run => names[run]), 0, i => { chosen = known[i]; show(); }) : null,
               body);
}

function transfersChart(section: IdleSection, names: string[]): HTMLElement | null {
  const known = section.runs.map((_, run) => run).filter(run => (section.runs[run].transfers?.count ?? 0) > 0);
  if (known.length === 0) return null;
  const columns = [{label: 'Transfers between ranks', left: true}, ...known.map(run => ({label: names[run]}))];
  const of = (run: number) => section.runs[run].transfers!;
  const seconds = (label: string, key: 'queued_seconds' | 'wire_seconds' | 'awaited_pass_seconds' | 'awaited_queued_seconds' | 'awaited_wire_seconds'): TableCell[] =>
    [label, ...known.map(run => ({text: formatSeconds(of(run)[key]), value: of(run)[key]}))];
  const rows: TableCell[][] = [
    ['number', ...known.map(run => ({text: String(of(run).count), value: of(run).count}))],
    ['moved', ...known.map(run => ({text: formatBytes(of(run).bytes), value: of(run).bytes}))],
    seconds('from computed to sent, sum', 'queued_seconds'),
    seconds('on the wire, sum', 'wire_seconds'),
    seconds('receivers idle: not computed', 'awaited_pass_seconds'),
    seconds('receivers idle: not sent', 'awaited_queued_seconds'),
    seconds('receivers idle: on the wire', 'awaited_wire_seconds'),
  ];
  return chart('Transfers between pipeline ranks', 'Of the first pipeline.',
               csvButton('transfers', () => csvOfTable(columns, rows)),
               table('Transfers between pipeline ranks', columns, rows, false));
}

export function idleView(section: IdleSection, report: Report): HTMLElement | null {
  const names = report.header.runs.map(run => run.name);
  const charts = [idleChart(section, names), transfersChart(section, names)].filter(one => one !== null);
  if (charts.length === 0) return null;
  return h('section', {id: 'idle'}, h('h2', {}, 'Idle time'), ...charts);
}
