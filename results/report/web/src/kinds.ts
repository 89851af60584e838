// SPDX-License-Identifier: Apache-2.0
// What slices of a timeline are, and the colors of all views. The colors of
// passes are those of Okabe and Ito, those of memory are Paul Tol's; both are
// distinct for all kinds of color vision.

export interface Kind {
  name: string;
  letter: string;  // in names of actions
  light: string;
  dark: string;
}

const kind = (name: string, light: string, dark = light, letter = ''): Kind => ({name, letter, light, dark});

// By the numbers of results/report/timeline.cc.
export const KINDS: Record<number, Kind> = {
  0: kind('forward', '#56B4E9', '#56B4E9', 'F'),
  1: kind('backward', '#E69F00', '#E69F00', 'B'),
  2: kind('backward, input', '#F0E442', '#F0E442', 'I'),
  3: kind('backward, weights', '#3DBB97', '#3DBB97', 'W'),
  4: kind('optimizer step', '#999999', '#999999', ' step u'),
  5: kind('offload', '#A6761D', '#B98A36', 'O'),
  6: kind('reload', '#C9A66B', '#D7B983', 'R'),
  10: kind('send activation', '#0072B2', '#3D9AD1'),
  11: kind('send gradient', '#0072B2', '#3D9AD1'),
  12: kind('receive activation', '#6A51A3', '#9E8BCB'),
  13: kind('receive gradient', '#6A51A3', '#9E8BCB'),
  14: kind('block to the host', '#A6761D', '#B98A36'),
  15: kind('block from the host', '#C9A66B', '#D7B983'),
  20: kind('tensor collective', '#D55E00', '#E8793A'),
  21: kind('gradient reduction', '#882255', '#C25C90'),
  22: kind('weight gather', '#117733', '#46A868'),
  23: kind('expert exchange', '#AA4499', '#C66BB5'),
  24: kind('tied-embedding reduction', '#661100', '#B5614E'),
  25: kind('context exchange', '#332288', '#8379CF'),
  30: kind('waits for a pass', '#C9CCD3', '#474B55'),
  31: kind('input queued', '#B9A3D0', '#6B5788'),
  32: kind('input on the wire', '#E3A99B', '#8F5646'),
  33: kind('waits for copies', '#A9C6A0', '#55744B'),
  34: kind('waits for the host', '#D9CFA3', '#766C3E'),
  35: kind('idle, other', '#9FB6CC', '#4A657F'),
  36: kind('drain', '#E4E6EA', '#33363D'),
};
// "forward (F)" for the letter of a pass.
export function passText(letter: string): string {
  const kind = Object.values(KINDS).find(one => one.letter === letter);
  return letter !== '' && kind ? `${kind.name} (${letter})` : letter;
}
export const FIRST_IDLE = 30, DRAIN = 36;
export const isIdle = (kind: number) => kind >= FIRST_IDLE;
export const isAction = (kind: number) => kind < 10;

export const CAUSE_TEXTS: Record<string, string> = {
  pass: 'waits for a pass of another rank',
  queued: 'its input is computed, but not yet on the wire',
  wire: 'its input is on the wire',
  copies: 'waits for gradients or weights of other copies of the stage',
  host: 'waits for activations on their way to or from the host',
  other: 'nothing that it needs is missing: launch gaps and the runtime',
};

export const BUSY_COLOR = '#56B4E9';

// Parts of the step (StepBreakdown), by their JSON names.
export const PART_COLORS: Record<string, string> = {
  compute_seconds: '#56B4E9',
  tensor_communication_seconds: '#D55E00',
  expert_communication_seconds: '#AA4499',
  context_communication_seconds: '#332288',
  pipeline_transfer_seconds: '#0072B2',
  data_communication_seconds: '#882255',
  optimizer_seconds: '#999999',
  bubble_seconds: '#C9CCD3',
  rollback_seconds: '#661100',
};

export const PART_TEXTS: Record<string, string> = {
  compute_seconds: 'passes, without the collectives inside them',
  tensor_communication_seconds: 'collectives of tensor parallelism that passes wait for',
  expert_communication_seconds: 'exchanges of tokens between experts',
  context_communication_seconds: 'exchanges of keys and values that attention does not hide',
  pipeline_transfer_seconds: 'idle while a transfer between ranks or from the host is in flight',
  data_communication_seconds: 'idle while gradients are reduced or weights are gathered',
  optimizer_seconds: 'optimizer steps',
  bubble_seconds: 'idle for any other reason: waiting for other ranks',
  rollback_seconds: 'expected rollbacks of post-validated steps',
};

// Memory classes in the order in which they are stacked.
export const CLASS_COLORS: [name: string, color: string][] = [
  ['reserved', '#777777'],
  ['weights', '#332288'],
  ['weight_stash', '#88CCEE'],
  ['predicted_weights', '#AA7744'],
  ['estimate_buffers', '#BBCC33'],
  ['optimizer_state', '#117733'],
  ['gradients', '#44AA99'],
  ['communication_buffers', '#6699CC'],
  ['gathered_weights', '#EE8866'],
  ['activations', '#DDCC77'],
  ['end_activations', '#999933'],
  ['weight_gradient_stash', '#AA4499'],
  ['recompute_scratch', '#CC6677'],
  ['pass_scratch', '#882255'],
  ['in use', '#56B4E9'],
];

export const classText = (name: string) => name.replaceAll('_', ' ');
