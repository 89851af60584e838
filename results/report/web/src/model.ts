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
  | SlackSection | LinksSection | SharedLinksSection | RooflineSection | MemorySection | RanksSection | ConfigurationSection | DocumentSection | LiveSection;

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
      count: number;
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

// ---- documents: "result" of --format json of other commands

export interface Plan {
  source: string;
  schedule: string;
  tensor: number;
  pipeline: number;
  data: number;
  context?: number;
  expert?: number;
  expert_tensor?: number;
  data_replicate?: number;  // groups of hybrid sharding
  chunks: number;
  microbatch_size: number;
  recompute?: string;
  layers: string;
  order?: string;
  sharding?: string;
  num_gpus: number;
  batch_seconds: number;
  batch_seconds_low: number | null;
  batch_seconds_high: number | null;
  samples_per_second: number;
  peak_memory_bytes: number;
  peak_memory_bytes_low?: number | null;
  peak_memory_bytes_high?: number | null;
  lower_bound_seconds: number;
  gap: number;
  price_per_sample: number | null;
  equal_to?: string[];
  why_not_best: string;  // empty for the best
  scenario: string;
}

interface DocumentOf<Type extends string, ResultOf> {
  type: Type;
  title: string;
  command: string;
  warnings: string[];
  result: ResultOf;
}

export type PlanSection = DocumentOf<'plan', {
  plans: Plan[];
  counts: {candidates: number; invalid: number; pruned_memory: number; pruned_time: number; duplicates: number; ranked: number; left: number};
  memory_limit_bytes: number;
  lower_bound_seconds: number;
  proven_seconds?: number | null;
  end: string;
  neighbors: {choice: string; batch_seconds: number | null; peak_memory_bytes: number; fits: boolean; difference: string}[];
}>;

// Swept fields and results by name; those that are not known are absent.
export type SweepPoint = {point: number; outcome: string} & Record<string, number | string | boolean>;

export type SweepSection = DocumentOf<'sweep', {
  num_points: number;
  num_done: number;
  num_refused: number;
  num_failed: number;
  num_missing: number;
  fields: string[];
  points: SweepPoint[];
}>;

export interface ComparedNumber {
  line: number;
  run: string;
  quantity: string;
  measured: number;
  predicted: number;
  error: number;  // predicted / measured - 1
  low?: number;
  high?: number;
}

export type ValidationSection = DocumentOf<'validation', {
  num_runs: number;
  statistics: {
    quantity: string;
    count: number;
    mean_absolute_error: number;
    bias: number;
    median_absolute_error: number;
    percentile_90: number;
    worst: number;
    inside_interval?: number;
  }[];
  numbers: ComparedNumber[];
  runs?: {line: number; fields: Record<string, string>}[];  // columns of the file
  skipped: {line: number; run: string; reason: string}[];
  misfits: {line: number; run: string; predicted_to_fit: boolean}[];
}>;

export type ExecutionSection = DocumentOf<'execution', {
  makespan_seconds: {predicted: number; measured: number; error: number};
  errors: {op: string; count: number; duration: {mean_absolute_error: number; bias: number}; start: {mean_absolute_error: number}}[];
  actions: {
    rank: number;
    action: string;
    predicted_start_seconds: number;
    predicted_seconds: number;
    measured_start_seconds: number;
    measured_seconds: number;
  }[];
}>;

export type SynthesisSection = DocumentOf<'synthesis', {
  value_seconds: number;
  lower_bound_seconds: number;
  lower_bound_reason: string;
  gap: number;
  objective: string;
  source: string;
  is_proven_optimal: boolean;
  held_by_microbatch: number;
  peak_held_per_rank: number[];
  memory_limit: number | null;
  simulated_seconds?: number;
  best_named?: string;
  best_named_simulated_seconds?: number;
  named: {name: string; value_seconds: number; peak_held: number; fits: boolean}[];
}>;

export type ExplanationSection = DocumentOf<'explanation', {
  batch_seconds: number;
  batch_seconds_low?: number;
  batch_seconds_high?: number;
  parameters: {owner: string; path: string; value: number; kind: string; source: string; elasticity: number}[];
  num_parameters_without_influence?: number;
  parts_by_kind: Record<string, number>;
  uncertainty?: Record<string, number | null>;  // one standard deviation of the logarithm
  measured?: {seconds: number};
}>;

export type StudySection = DocumentOf<'study', {
  samples_per_batch: number;
  num_batches: number;
  target_loss: number | null;
  schedules: {
    schedule: string;
    semantics: string;
    batch_seconds: number;
    idle_ratio: number;
    final_loss: number | null;
    final_spread: number | null;
    staleness_updates: number;
    weight_versions: number;
    samples_to_target?: number;
    seconds_to_target?: number;
    curves?: {seed: number; losses: (number | null)[]}[];
  }[];
}>;

export type PlannersSection = DocumentOf<'planners', {
  answers: {
    algorithm: string;
    error?: string;
    schedule?: string;
    planned_batch_seconds?: number;
    not_simulated?: string;
    stages?: {first_layer: number; end_layer: number; replicas: number}[];
    simulated?: {batch_seconds: number; samples_per_second: number; peak_memory_bytes: number; fits_memory: boolean};
  }[];
}>;

interface Slowdown {
  name: string;
  slowdown: number;
}
interface Explained {
  of: string[];
  seconds_without: number;
  share: number;
}

export type StragglersSection = DocumentOf<'stragglers', {
  format: string;
  num_replicas: number;
  num_stages: number;
  recorded_seconds: number;
  with_gaps_seconds: number;
  replayed_seconds: number;
  ideal_seconds: number;
  slowdown: number;
  by_kind: Slowdown[];
  by_stage: Slowdown[];
  by_replica: Slowdown[];
  by_worker: (Slowdown & {replica: number; rank: number})[];
  slack_seconds_by_stage: number[];
  slowest_workers: Explained;
  last_stage: Explained;
  suspect: string;
  steps: {step: number; recorded_seconds: number; with_gaps_seconds: number; replayed_seconds: number; ideal_seconds: number}[];
  slow_workers: {replica: number; rank: number; speed: number}[];
  slow_flag: string;
}>;

interface MeanAndLimits {
  mean: number;
  low: number;
  high: number;
}

export type GoodputSection = DocumentOf<'goodput', {
  mean_seconds_between_failures: number;
  failures: {name: string; mean_seconds_between: number}[];
  checkpoint_stall_seconds: number;
  checkpoint_safe_seconds: number;
  checkpoint_load_seconds: number;
  work_seconds: number;
  young_interval_seconds: number;
  daly_interval_seconds: number;
  exact_interval_seconds: number;
  interval_steps: number;
  interval_seconds: number;
  flat_interval_steps: number[];
  tried_intervals: {interval_steps: number; interval_seconds: number; wall_seconds: number; goodput: number}[];
  goodput: number;
  daly_goodput?: number;
  wall_seconds: MeanAndLimits;
  days: MeanAndLimits;
  cost?: MeanAndLimits;
  num_failures: MeanAndLimits;
  shares: {training: number; checkpoint_stalls: number; lost_work: number; recovery: number; waiting: number; fewer_replicas: number};
  most_lost_seconds: number;
  mean_loss_seconds: number;
  target_goodput?: number;
  largest_loss_seconds?: number;
  investments: {what: string; change: string; saved_seconds: number; elasticity?: number; elasticity_standard_error?: number}[];
}>;

interface FrequencyPoint {
  deadline_seconds: number;
  seconds: number;
  joules: number;
  lower_bound_joules: number;
}

export type EnergySection = DocumentOf<'energy', {
  baseline: {seconds: number; joules: number};
  fastest: FrequencyPoint;
  least_energy: FrequencyPoint;
  frontier: FrequencyPoint[];
  infeasible_deadlines: number[];
  stragglers: {factor: number; iteration_seconds: number; plan_seconds: number; baseline_joules: number; joules: number}[];
  // Clocks of each stage and operation in each plan.
  clocks: {plan: string; stage: number; operation: string; num_passes: number; lowest_mhz: number; mean_mhz: number; highest_mhz: number}[];
  power_cap?: {watts: number; lower_bound_seconds: number; plan?: FrequencyPoint | null};
}>;

export type DocumentSection =
  | PlanSection | SweepSection | ValidationSection | ExecutionSection
  | SynthesisSection | ExplanationSection | StudySection | PlannersSection
  | StragglersSection | GoodputSection | EnergySection;

// How much longer passes and transfers may take before the run ends later; a
// run without a timeline has no rows.
export interface SlackSection {
  type: 'slack';
  runs: {
    is_exact: boolean;
    batch_seconds: number;
    rows: {rank: number; what: string; count: number; num_critical: number; median_seconds: number; largest_seconds: number}[];
  }[];
}

// Transfers between ranks: [run][pair of ranks].
export interface LinksSection {
  type: 'links';
  runs: {
    from_rank: number;
    to_rank: number;
    count: number;
    bytes: number;
    busy_seconds: number;
    utilization: number;  // busy seconds over the run
    bytes_per_second: number | null;  // while it is busy
  }[][];
}

// Utilization of the links that several pairs of ranks use; null: none is known.
export interface SharedLinksSection {
  type: 'shared_links';
  runs: ({
    from_seconds: number;
    interval_seconds: number;
    num_left_out: number;
    links: {
      name: string;
      bytes_per_second: number;  // of the link
      num_pairs: number;
      transfer_bytes: number;  // as the simulator moves them
      collective_bytes: number;
      host_bytes: number;
      mean: number;  // utilization
      peak: number;  // of an interval
      utilization: number[];  // [interval]
    }[];
  } | null)[];
}

// Kernels and the limits of the device; null: the run has no kernels.
export interface RooflineSection {
  type: 'roofline';
  runs: ({
    device: string;
    peaks: {format: string; flops_per_second: number}[];
    memory_bytes_per_second: number;
    parts: {
      part: string;
      count: number;  // of kernels in one microbatch, over all stages
      seconds: number;
      seconds_ratio: number;
      flops_per_second: number;
      flops_ratio: number | null;  // over the highest peak
      bytes_per_second: number;
      bytes_ratio: number | null;
      roof_ratio: number | null;  // over what the limits allow; null: no FLOP
    }[];
    kernels: {part: string; flops: number; bytes: number; seconds: number; count: number}[];
  } | null)[];
}

// ---- weir live

export interface LiveSettings {
  pipeline: number;
  microbatches: number;
  chunks: number;
  schedule: string;
  bandwidth: number;  // factor
  memory_limit_bytes: number;  // 0: none
  slowest_gpu: number;  // speed of GPU 0
}

export interface LiveSection {
  type: 'live';
  name: string;
  settings: LiveSettings;
  schedules: string[];
  given_costs: boolean;
  memory_capacity_bytes: number | null;
  num_gpus: number;
  limits: {pipeline: number; microbatches: number; chunks: number; bandwidth: number; slowest_gpu: number};
}

// The answer to /estimate; "result" as of simulate --method fast --format json.
export interface LiveEstimate {
  settings: LiveSettings;
  result: {
    method: string;
    batch_seconds: number;
    samples_per_second?: number;
    tokens_per_second?: number;
    peak_memory_bytes: number;
    num_gpus: number;
    num_microbatches: number;
  };
  fits: boolean;
  warnings: string[];
}
