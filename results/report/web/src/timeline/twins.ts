// SPDX-License-Identifier: Apache-2.0
// The same pass in other runs: of the same kind, stage and microbatch.
import {isAction} from '../kinds.ts';
import type {Panel} from '../model.ts';
import {NONE, type Row, type Slices} from './slices.ts';

const keyOf = (slices: Slices, i: number) => (slices.stage(i) * 16 + slices.kind[i]) * 2 ** 24 + slices.microbatch(i);

// Durations that differ by less than this part are equal.
const EQUAL = 0.01;

export class Twins {
  private readonly panels: Panel[];
  private readonly rows = new Map<Panel, Row[]>();
  private readonly passes = new Map<Panel, Map<number, number>>();

  constructor(private readonly slices: Slices) {
    for (const row of slices.rows) {
      if (row.lane !== 'compute') continue;
      if (!this.rows.has(row.panel)) this.rows.set(row.panel, []);
      this.rows.get(row.panel)!.push(row);
    }
    this.panels = [...this.rows.keys()];
  }

  private passesOf(panel: Panel): Map<number, number> {
    let passes = this.passes.get(panel);
    if (passes) return passes;
    passes = new Map();
    for (const row of this.rows.get(panel) ?? []) {
      for (let i = row.begin; i < row.end; i++) {
        if (isAction(this.slices.kind[i])) passes.set(keyOf(this.slices, i), i);
      }
    }
    this.passes.set(panel, passes);
    return passes;
  }

  // The same pass of another panel, or NONE.
  in(panel: Panel, i: number): number {
    if (!isAction(this.slices.kind[i])) return NONE;
    return this.passesOf(panel).get(keyOf(this.slices, i)) ?? NONE;
  }

  others(panel: Panel): Panel[] {
    return this.panels.filter(one => one !== panel);
  }

  // The pass before this one on the same rank, or NONE.
  private before(i: number): number {
    const row = this.slices.rowOf(i);
    for (let before = i - 1; before >= row.begin; before--) if (isAction(this.slices.kind[before])) return before;
    return NONE;
  }

  // Whether a pass is missing in the run that it is compared with, takes another
  // time there, or follows another pass. Runs are compared with the first one,
  // and that one with the second.
  differs(i: number): boolean {
    const {slices} = this;
    if (!isAction(slices.kind[i])) return false;
    const {panel} = slices.rowOf(i);
    const other = panel === this.panels[0] ? this.panels[1] : this.panels[0];
    if (!other) return false;
    const twin = this.in(other, i);
    if (twin === NONE) return true;
    const own = slices.end[i] - slices.start[i], its = slices.end[twin] - slices.start[twin];
    if (Math.abs(own - its) > EQUAL * Math.max(own, its) + 2) return true;
    const before = this.before(i), twinBefore = this.before(twin);
    if (before === NONE || twinBefore === NONE) return before !== twinBefore;
    return keyOf(slices, before) !== keyOf(slices, twinBefore);
  }
}

// Shifts the rows of other runs so that the selected pass begins at the same
// place in all of them; runs without it stay where they are. Returns whether
// rows may have moved.
export function alignRows(slices: Slices, aligned: boolean, selected: number, twins: number[]): boolean {
  if (aligned && selected === NONE) return false;
  const shiftOf = new Map<Panel, number>();
  if (aligned) {
    const own = slices.rowOf(selected);
    for (const twin of twins) {
      shiftOf.set(slices.rowOf(twin).panel, slices.start[twin] - slices.start[selected] + own.shift);
    }
  }
  for (const row of slices.rows) row.shift = aligned ? shiftOf.get(row.panel) ?? row.shift : 0;
  return true;
}
