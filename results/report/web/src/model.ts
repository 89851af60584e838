// SPDX-License-Identifier: Apache-2.0
// The header of a report's data (results/report/data_block.h). Seconds and
// bytes are numbers; names and texts may contain anything and are shown as text.

export interface Header {
  version: number;
  weir_version: string;
  title: string;
  runs: {name: string; scenario: string}[];
  notes: string[];
  sections: Section[];
  columns: {type: 'u8' | 'u16' | 'u32' | 'f64'; length: number; offset: number}[];
}

export type Section =
  | FiguresSection | TimelineSection | BreakdownSection | IdleSection
  | MemorySection | RanksSection | ConfigurationSection;

export interface Cell {
  text: string;
  value: number | null;
  low?: number;
  high?: number;
  interval?: string;
}

// Key figures: a row per figure, a cell per run.
export interface FiguresSection {
  type: 'figures';
  rows: {
    label: string;
    json: string;  // field of "result" of --format json; empty: none
    unit: string;
    better: '' | 'lower' | 'higher';
    cells: Cell[];
  }[];
  texts: {label: string; text: string}[][];  // [run]
  fastest: number | null;  // run that fits in memory
  warnings: string[];
}

// Slices of all timelines, row after row. [slice] except bytes_values.
export interface SliceColumns {
  gap: number;  // ticks from the end of the slice before it in its row, or from 0
  duration: number;  // ticks
  kind: number;  // kinds.ts
  stage: number;  // as int32
  microbatch: number;  // as int32
  span: number;  // number of microbatches
  version: number;  // of weights, plus 1; 0: none
  peer: number;  // rank, plus 1; 0: none
  bytes: number;  // index into bytes_values
  bytes_values: number;
  input: number;  // this slice's index minus that of its input, mod 2^32; 0: none
}

export interface Panel {
  run: number;
  replica: number;
  tensor_rank: number;
  pipelines: number;  // that do the same
  from_seconds: number;
  idle_known: boolean;
  first: number;  // its first slice
  rows: {rank: number; lane: string; size: number}[];
}

export interface TimelineSection {
  type: 'timeline';
  tick_seconds: number;
  end_ticks: number;
  panels: Panel[];
  columns: SliceColumns;
}

// Parts of the time of a batch.
export interface BreakdownSection {
  type: 'breakdown';
  parts: {name: string; json: string}[];
  runs: {
    batch_seconds: number;
    seconds: number[] | null;  // [part], mean over all GPUs
    texts?: string[];
    ratios?: string[];
    busiest: string;
    busiest_parts: {
      name: string;
      seconds: number;
      text: string;
      forward_seconds: number;
      backward_seconds: number;
    }[];
  }[];
}

// Idle seconds by cause.
export interface IdleSection {
  type: 'idle';
  causes: string[];
  runs: {
    makespan_seconds?: number;
    ranks: {
      rank: number;
      busy: number;
      startup: number[];  // [cause]
      between: number[];
      drain: number;
    }[];
    transfers?: {
      number: number;
      bytes: number;
      queued_seconds: number;
      wire_seconds: number;
      awaited_pass_seconds: number;
      awaited_queued_seconds: number;
      awaited_wire_seconds: number;
    };
  }[];
}

export interface MemoryPeaks {
  rank: number;
  replica: number;
  gpu: number;
  peak_bytes: number;
  peak_text: string;
  peak_at_seconds: number;
  cached_bytes: number;
  classes: Record<string, number>;
}

export interface MemorySeries {
  run: number;
  replica: number;
  tensor_rank: number;
  rank: number;
  peak_bytes: number;
  peak_at_seconds: number;
  begin: number;  // its samples in the columns
  size: number;
}

// Memory: peaks of each rank's fullest GPU, and changes over time.
export interface MemorySection {
  type: 'memory';
  classes: string[];  // the last one: all memory in use, where classes are unknown
  tick_seconds: number;
  runs: {capacity_bytes: number | null; makespan_seconds: number; peaks: MemoryPeaks[]}[];
  series: MemorySeries[];
  columns: {gap: number; kind: number; bytes: number; bytes_values: number};
}

export interface RanksSection {
  type: 'ranks';
  runs: {
    rank: number;
    busy_seconds: number;
    idle_seconds: number;
    exposed_communication_seconds: number;
    peak_memory_bytes: number;
    peak_activation_microbatches: number;
    weight_versions: number;
  }[][];
}

export interface ConfigurationSection {
  type: 'configuration';
  runs: {
    scenario: string;
    method: string;
    weir_version: string;
    git_revision: string;
    simgrid_version: string;
    gpu_name: string;
  }[];
}
