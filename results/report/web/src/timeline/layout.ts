// SPDX-License-Identifier: Apache-2.0
// Where rows are: pixels from the top of all rows. Rows are higher where the text is larger.
import {fontPixels} from '../theme.ts';
import type {Row, Slices} from './slices.ts';

export interface PlacedRow {
  row: Row;
  top: number;
  height: number;
  label: string;  // empty for the rows of communication
}
export interface Heading {
  panel: Row['panel'];
  top: number;
}
export interface Layout {
  rows: PlacedRow[];
  headings: Heading[];
  height: number;
}

const HEADING = 22;
const COMPUTE = 22, LEAST_COMPUTE = 12, COMMUNICATION = 7;
const GAP = 2;

export interface LayoutOptions {
  communication: boolean;
  byRank: boolean;  // rows of all runs under each other, rank by rank
  names: string[];
}

// Rows are lower if there are many of them.
function computeHeight(numRows: number): number {
  return Math.round(fontPixels(Math.max(LEAST_COMPUTE, Math.min(COMPUTE, Math.floor(700 / Math.max(numRows, 1))))));
}

export function layOut(slices: Slices, options: LayoutOptions): Layout {
  const layout: Layout = {rows: [], headings: [], height: 0};
  const panels = [...new Set(slices.rows.map(row => row.panel))];
  const shown = slices.rows.filter(row => row.lane === 'compute' || options.communication);
  const height = computeHeight(shown.filter(row => row.lane === 'compute').length);
  const communication = Math.round(fontPixels(COMMUNICATION)), heading = Math.round(fontPixels(HEADING));
  const add = (row: Row, label: string) => {
    const isCompute = row.lane === 'compute';
    const top = layout.height;
    layout.rows.push({row, top, height: isCompute ? height : communication, label: isCompute ? label : ''});
    layout.height = top + (isCompute ? height : communication) + GAP;
  };
  if (options.byRank && panels.length > 1) {
    const ranks = [...new Set(shown.map(row => row.rank))].sort((a, b) => a - b);
    for (const rank of ranks) {
      for (const panel of panels) {
        const rows = shown.filter(row => row.rank === rank && row.panel === panel);
        rows.forEach((row, i) => add(row, i === 0 ? `${rank} ${options.names[panel.run]}` : ''));
      }
      layout.height += 5;
    }
    return layout;
  }
  for (const panel of panels) {
    if (panels.length > 1 || panel.pipelines > 1) {
      layout.headings.push({panel, top: layout.height});
      layout.height += heading;
    }
    let last = -1;
    for (const row of shown) {
      if (row.panel !== panel) continue;
      add(row, row.rank === last ? '' : `rank ${row.rank}`);
      last = row.rank;
    }
    layout.height += 6;
  }
  return layout;
}
