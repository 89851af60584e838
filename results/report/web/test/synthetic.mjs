// SPDX-License-Identifier: Apache-2.0
// Writes a report of a made-up 1F1B run, to measure the page with any number of
// slices without simulating them.
//
//   node test/synthetic.mjs RANKS MICROBATCHES OUT.html
import {readFileSync, writeFileSync} from 'node:fs';
import {gzipSync} from 'node:zlib';

const MARKER = '@WEIR_REPORT_DATA@';

// Columns as results/report/data_block.h describes them.
class DataBlock {
  columns = [];
  parts = [];
  size = 0;

  add(values, type) {
    const arrays = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array};
    const bytes = Buffer.from(arrays[type].from(values).buffer);
    this.columns.push({type, length: values.length, offset: this.size});
    this.parts.push(bytes, Buffer.alloc((8 - bytes.length % 8) % 8));
    this.size += bytes.length + (8 - bytes.length % 8) % 8;
    return this.columns.length - 1;
  }

  finish(header) {
    const text = Buffer.from(JSON.stringify({...header, version: 1, columns: this.columns}));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(text.length);
    const pad = Buffer.alloc((8 - (4 + text.length) % 8) % 8, ' ');
    return Buffer.concat([length, text, pad, ...this.parts]);
  }
}

// [rank]: passes as [is backward, microbatch]
function orders(ranks, microbatches) {
  return Array.from({length: ranks}, (_, rank) => {
    const order = [];
    const warmup = Math.min(ranks - rank, microbatches);
    for (let m = 0; m < warmup; m++) order.push([false, m]);
    for (let m = 0; m < microbatches; m++) {
      order.push([true, m]);
      if (warmup + m < microbatches) order.push([false, warmup + m]);
    }
    return order;
  });
}

// Passes of 1000 and 2000 ticks that vary by up to a tenth.
export function synthetic(ranks, microbatches) {
  const order = orders(ranks, microbatches);
  const end = [new Float64Array(ranks * microbatches), new Float64Array(ranks * microbatches)];
  const done = [new Uint8Array(ranks * microbatches), new Uint8Array(ranks * microbatches)];
  const next = new Int32Array(ranks), clock = new Float64Array(ranks);
  const rows = Array.from({length: ranks}, () => []);
  let seed = 1;
  const vary = mean => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.round(mean * (0.95 + 0.1 * seed / 2147483648));
  };
  for (let left = 2 * ranks * microbatches; left > 0;) {
    for (let rank = 0; rank < ranks; rank++) {
      while (next[rank] < order[rank].length) {
        const [back, m] = order[rank][next[rank]];
        const from = back ? rank + 1 : rank - 1, kind = back ? 1 : 0;
        const has = from >= 0 && from < ranks;
        if (has && !done[kind][from * microbatches + m]) break;
        const begin = Math.max(clock[rank], has ? end[kind][from * microbatches + m] + 50 : 0);
        if (begin > clock[rank]) rows[rank].push([30, clock[rank], begin, m, from + 1]);
        clock[rank] = begin + vary(back ? 2000 : 1000);
        rows[rank].push([kind, begin, clock[rank], m, 0]);
        end[kind][rank * microbatches + m] = clock[rank];
        done[kind][rank * microbatches + m] = 1;
        next[rank]++;
        left--;
      }
    }
  }
  return rows;
}

export function page(template, ranks, microbatches) {
  const rows = synthetic(ranks, microbatches);
  const columns = {gap: [], duration: [], kind: [], stage: [], microbatch: [], peer: [], input: []};
  const index = [new Map(), new Map()];
  let at = 0;
  rows.forEach((row, rank) => row.forEach(([kind, , , m]) => {
    if (kind < 2) index[kind].set(rank * microbatches + m, at);
    at++;
  }));
  const size = at;
  at = 0;
  let last = 0;
  rows.forEach((row, rank) => {
    let until = 0;
    for (const [kind, begin, end, m, peer] of row) {
      columns.gap.push(begin - until);
      columns.duration.push(end - begin);
      until = end;
      columns.kind.push(kind);
      columns.stage.push(rank);
      columns.microbatch.push(m);
      columns.peer.push(peer);
      const from = kind === 0 ? rank - 1 : rank + 1;
      const input = kind < 2 && from >= 0 && from < ranks ? index[kind].get(from * microbatches + m) : at;
      columns.input.push((at - input) >>> 0);
      at++;
    }
    last = Math.max(last, until);
  });
  const data = new DataBlock();
  const zeros = new Uint8Array(size);
  const added = {
    gap: data.add(columns.gap, 'u32'), duration: data.add(columns.duration, 'u32'), kind: data.add(columns.kind, 'u8'),
    stage: data.add(columns.stage, 'u16'), microbatch: data.add(columns.microbatch, 'u32'),
    span: data.add(new Uint8Array(size).fill(1), 'u8'), version: data.add(zeros, 'u8'), peer: data.add(columns.peer, 'u8'),
    bytes: data.add(zeros, 'u8'), bytes_values: data.add([0], 'f64'), input: data.add(columns.input, 'u32'),
  };
  const block = data.finish({
    tool: 'weir', weir_version: 'synthetic', title: `${size} slices`, runs: [{name: '1f1b', scenario: ''}], notes: [],
    sections: [
      {type: 'figures', texts: [[]], fastest: null, warnings: [],
       rows: [{label: 'Step time', json: '', unit: 's', better: 'lower', cells: [{text: `${last / 1e6} s`, value: last / 1e6}]}]},
      {type: 'timeline', tick_seconds: 1e-6, end_ticks: last, columns: added,
       panels: [{run: 0, replica: 0, tensor_rank: 0, pipelines: 1, from_seconds: 0, idle_known: true, first: 0,
                 rows: rows.map((row, rank) => ({rank, lane: 'compute', size: row.length}))}]},
    ],
  });
  return {size, page: template.replace(MARKER, () => gzipSync(block).toString('base64'))};
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [, , ranks, microbatches, out] = process.argv;
  const template = readFileSync(new URL('../../template.html', import.meta.url), 'utf8');
  const made = page(template, Number(ranks), Number(microbatches));
  writeFileSync(out, made.page);
  console.log(`${made.size} slices, ${made.page.length} bytes`);
}
