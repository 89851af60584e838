// SPDX-License-Identifier: Apache-2.0
// The slices as CSV, and a table of them.
import {type CsvRow, table} from '../dom.ts';
import {formatSeconds} from '../format.ts';
import {isIdle, KINDS} from '../kinds.ts';
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
