// SPDX-License-Identifier: Apache-2.0
// The slices of all timelines as columns, and what is known about each.
import {formatBytes, formatSeconds} from '../format.ts';
import {DRAIN, FIRST_IDLE, isAction, isIdle, KINDS} from '../kinds.ts';
import type {Column, Report} from '../load.ts';
import type {Panel, TimelineSection} from '../model.ts';
import {Twins} from './twins.ts';

export interface Row {
  panel: Panel;
  rank: number;
  lane: string;
  begin: number;  // its slices
  end: number;
  overview: Uint8Array | null;  // of Slices.overviewOf
  shift: number;  // ticks by which it is shown earlier, to align runs
}

export const NONE = -1;
const OVERVIEW = 8192;

export class Slices {
  readonly size: number;
  readonly start: Uint32Array;  // [slice] ticks
  readonly end: Uint32Array;
  readonly kind: Uint8Array;
  readonly rows: Row[] = [];
  readonly tick: number;  // seconds
  readonly endTicks: number;
  private twinsOfPasses: Twins | null = null;
  private readonly columns: Record<'stage' | 'microbatch' | 'span' | 'version' | 'peer' | 'bytes' | 'input' | 'values', Column>;

  constructor(section: TimelineSection, report: Report) {
    const column = (key: keyof TimelineSection['columns']) => report.column(section.columns[key]);
    this.kind = column('kind') as Uint8Array;
    this.size = this.kind.length;
    this.tick = section.tick_seconds;
    this.endTicks = section.end_ticks;
    this.columns = {
      stage: column('stage'), microbatch: column('microbatch'), span: column('span'), version: column('version'),
      peer: column('peer'), bytes: column('bytes'), input: column('input'), values: column('bytes_values'),
    };
    const gap = column('gap'), duration = column('duration');
    this.start = new Uint32Array(this.size);
    this.end = new Uint32Array(this.size);
    for (const panel of section.panels) {
      let at = panel.first;
      for (const {rank, lane, size} of panel.rows) {
        const end = at + size;
        this.rows.push({panel, rank, lane, begin: at, end, overview: null, shift: 0});
        let tick = 0;
        for (; at < end; at++) {
          this.start[at] = tick += gap[at];
          this.end[at] = tick += duration[at];
        }
      }
    }
  }

  stage(i: number) { return this.columns.stage[i] | 0; }
  microbatch(i: number) { return this.columns.microbatch[i] | 0; }
  span(i: number) { return this.columns.span[i]; }
  version(i: number) { return this.columns.version[i] - 1; }
  peer(i: number) { return this.columns.peer[i] - 1; }
  bytes(i: number) { return this.columns.values[this.columns.bytes[i]]; }
  // The action of another rank that computed this one's input, or NONE.
  input(i: number) {
    const distance = this.columns.input[i];
    return distance === 0 ? NONE : (i - distance) >>> 0;
  }

  rowOf(i: number): Row {
    let low = 0, high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.rows[middle].begin <= i) low = middle; else high = middle - 1;
    }
    // Rows may be empty.
    while (this.rows[low].end <= i && low + 1 < this.rows.length) low++;
    return this.rows[low];
  }

  // The first slice of a row that ends after `tick`.
  firstAfter(row: Row, tick: number): number {
    let low = row.begin, high = row.end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] <= tick) low = middle + 1; else high = middle;
    }
    return low;
  }

  at(row: Row, tick: number): number {
    const i = this.firstAfter(row, tick);
    return i < row.end && this.start[i] <= tick ? i : NONE;
  }

  // For each of OVERVIEW equal parts of the time: the kind that fills most of
  // it, plus 1; 0: nothing.
  overviewOf(row: Row): Uint8Array {
    if (row.overview) return row.overview;
    const width = this.endTicks / OVERVIEW;
    const overview = new Uint8Array(OVERVIEW);
    const filled = new Float64Array(256);
    let touched: number[] = [];
    let bucket = 0;
    const close = () => {
      let most = 0, sum = 0;
      for (const kind of touched) {
        sum += filled[kind];
        if (filled[kind] > most) {
          most = filled[kind];
          overview[bucket] = kind + 1;
        }
        filled[kind] = 0;
      }
      if (width - sum > most) overview[bucket] = 0;
      touched = [];
    };
    for (let i = row.begin; i < row.end; i++) {
      const kind = this.kind[i];
      let from = this.start[i];
      const end = this.end[i];
      while (from < end) {
        const at = Math.min(Math.floor(from / width), OVERVIEW - 1);
        if (at !== bucket) {
          close();
          bucket = at;
        }
        const until = at === OVERVIEW - 1 ? end : Math.min(end, (at + 1) * width);
        if (filled[kind] === 0) touched.push(kind);
        filled[kind] += until - from;
        if (until <= from) break;
        from = until;
        // Parts that one slice fills.
        const last = Math.min(Math.floor(end / width), OVERVIEW - 1);
        if (last > at + 1) {
          close();
          overview.fill(kind + 1, at + 1, last);
          bucket = last;
          from = last * width;
        }
      }
    }
    close();
    return (row.overview = overview);
  }

  name(i: number): string {
    const kind = this.kind[i];
    const microbatch = this.microbatch(i), span = this.span(i);
    if (isAction(kind)) {
      return `${this.stage(i)}${KINDS[kind].letter}${microbatch}${span > 1 ? `-${microbatch + span - 1}` : ''}`;
    }
    if (isIdle(kind)) return KINDS[kind].name;
    return `${KINDS[kind].name}, stage ${this.stage(i)}, ${kind === 21 || kind === 24 ? 'update' : 'microbatch'} ${microbatch}`;
  }

  twins(): Twins {
    return (this.twinsOfPasses ??= new Twins(this));
  }

  seconds(ticks: number): string { return formatSeconds(ticks * this.tick); }

  // What a slice is, in lines of label and text.
  describe(i: number): [label: string, text: string][] {
    const kind = this.kind[i], row = this.rowOf(i);
    const lines: [string, string][] = [];
    const add = (label: string, text: string) => lines.push([label, text]);
    if (isAction(kind)) {
      const span = this.span(i), microbatch = this.microbatch(i);
      add('pass', KINDS[kind].name);
      add(kind === 4 ? 'update' : 'microbatch', span > 1 ? `${microbatch} to ${microbatch + span - 1}` : String(microbatch));
      add('stage', String(this.stage(i)));
      if (this.version(i) >= 0) add('weight version', String(this.version(i)));
    }
    add('rank', String(row.rank));
    add('start', this.seconds(this.start[i]));
    add('duration', this.seconds(this.end[i] - this.start[i]));
    if (kind >= 10 && kind < 14) add(kind < 12 ? 'to rank' : 'from rank', String(this.peer(i)));
    if (this.bytes(i) > 0) add('bytes', formatBytes(this.bytes(i)));
    const input = this.input(i);
    if (input !== NONE) {
      const waited = this.end[input] <= this.start[i];
      add('input', `${this.name(input)} of rank ${this.rowOf(input).rank}, computed at ${this.seconds(this.end[input])}` +
          (waited ? '' : ' (later)'));
    }
    if (isIdle(kind) && kind !== DRAIN) add('before', this.awaiting(i, row));
    return lines;
  }

  // "2F3; waits for 1F3 of rank 1"
  private awaiting(i: number, row: Row): string {
    let next = i + 1;
    while (next < row.end && !isAction(this.kind[next])) next++;
    if (next >= row.end) return '';
    const own = this.name(next);
    const peer = this.peer(i);
    if (peer < 0 || this.kind[i] > FIRST_IDLE + 2) return own;
    const input = this.input(next);
    return input === NONE ? `${own}, input from rank ${peer}` : `${own}, input ${this.name(input)} from rank ${peer}`;
  }
}
