// SPDX-License-Identifier: Apache-2.0
// The slices as CSV, a table of them, and the legend of their kinds.
import {type CsvRow, h, legend, name, table} from '../dom.ts';
import {formatSeconds} from '../format.ts';
import {isIdle, KINDS} from '../kinds.ts';
import {isDark, onTheme} from '../theme.ts';
import type {Slices} from './slices.ts';

export function* csvRows(s: Slices, names: string[]): Generator<CsvRow> {
  yield ['run', 'replica', 'tensor_rank', 'rank', 'track', 'kind', 'stage', 'microbatch', 'microbatches', 'weight_version',
         'start_seconds', 'end_seconds', 'bytes', 'peer_rank'];
  for (const row of s.rows) {
    for (let i = row.begin; i < row.end; i++) {
      const idle = isIdle(s.kind[i]);
      yield [names[row.panel.run], row.panel.replica, row.panel.tensor_rank, row.rank, row.lane, KINDS[s.kind[i]].name,
             idle ? null : s.stage(i), idle ? null : s.microbatch(i), idle ? null : s.span(i),
             s.version(i) < 0 ? null : s.version(i), s.start[i] * s.tick, s.end[i] * s.tick,
             s.bytes(i) || null, s.peer(i) < 0 ? null : s.peer(i)];
    }
  }
}

// Seconds of each kind of slice on each rank.
export function summary(s: Slices, names: string[]): HTMLElement {
  const used = [...new Set(s.kind)].sort((a, b) => a - b);
  const rows = s.rows.filter(row => row.lane === 'compute');
  const columns = [{label: 'Rank', left: true}, ...used.map(kind => ({label: KINDS[kind].name}))];
  const several = new Set(rows.map(row => row.panel)).size > 1;
  const keys = [...new Set(rows.map(row => `${row.panel.first}:${row.rank}`))];
  const cells = keys.map(key => {
    const [first, rank] = key.split(':').map(Number);
    const ticks = new Float64Array(256);
    let run = 0;
    for (const row of s.rows) {
      if (row.panel.first !== first || row.rank !== rank) continue;
      run = row.panel.run;
      for (let i = row.begin; i < row.end; i++) ticks[s.kind[i]] += s.end[i] - s.start[i];
    }
    return [{text: `${several ? `${names[run]}, ` : ''}rank ${rank}`, value: null},
            ...used.map(kind => ({text: formatSeconds(ticks[kind] * s.tick), value: ticks[kind] * s.tick}))];
  });
  return table('Time of each kind of slice on each rank', columns, cells);
}

// How the selected pass differs in other runs.
export function twinLines(slices: Slices, selected: number, twins: number[], names: string[]): HTMLElement[] {
  const signed = (ticks: number, more: string, less: string, same: string) =>
    (ticks === 0 ? same : `${slices.seconds(Math.abs(ticks))} ${ticks > 0 ? more : less}`);
  return twins.map(twin => {
    const row = slices.rowOf(twin);
    const later = slices.start[twin] - slices.start[selected];
    const longer = (slices.end[twin] - slices.start[twin]) - (slices.end[selected] - slices.start[selected]);
    return h('dl', {}, h('dt', {}, 'in ', name(names[row.panel.run])),
             h('dd', {}, `rank ${row.rank}, starts ${signed(later, 'later', 'earlier', 'at the same time')}, ` +
                         `takes ${signed(longer, 'longer', 'less', 'as long')}`));
  });
}

export function kindsLegend(slices: Slices): HTMLElement {
  const used = new Uint8Array(256);
  for (const kind of slices.kind) used[kind] = 1;
  const box = h('div');
  const show = () => box.replaceChildren(legend(Object.entries(KINDS)
    .filter(([kind]) => used[Number(kind)])
    .map(([, kind]) => [kind.name + (/^\w$/.test(kind.letter) ? ` (${kind.letter})` : ''), isDark() ? kind.dark : kind.light])));
  show();
  onTheme(show);
  return box;
}
