// SPDX-License-Identifier: Apache-2.0
// A synthesized schedule against its lower bound and the named schedules, and
// the results of planners of papers.
import {bars} from './bars.ts';
import {chart, csvButton, csvOfTable, details, h, name, table, type TableCell} from './dom.ts';
import {formatBytes, formatCount, formatPercent, formatSeconds} from './format.ts';
import type {PlannersSection, SynthesisSection} from './model.ts';

const seconds = (value: number) => ({text: formatSeconds(value), value});

export function synthesisView(section: SynthesisSection): HTMLElement {
  const {result} = section;
  const unit = result.held_by_microbatch;
  const held = (value: number) => ({text: unit > 0 ? String(Number((value / unit).toPrecision(4))) : '0', value: unit > 0 ? value / unit : 0});
  const bound = result.lower_bound_seconds;
  const above = (value: number) => (bound > 0 ? {text: formatPercent(value / bound - 1), value: value / bound - 1} : '-');
  const peak = result.peak_held_per_rank.reduce((a, b) => Math.max(a, b), 0);
  const orders = [{name: 'found', value_seconds: result.value_seconds, peak_held: peak, fits: true}, ...result.named];
  const columns = [{label: 'Schedule', left: true}, {label: result.objective}, {label: 'Above the bound'}, {label: 'Peak activations, in microbatches'},
                   {label: 'Fits', left: true}];
  const cells: TableCell[][] = orders.map(one => [one.name, seconds(one.value_seconds), above(one.value_seconds), held(one.peak_held), one.fits ? 'yes' : 'no']);
  const verdict = result.is_proven_optimal ? 'Proven optimal for these times of passes'
    : `Not proven optimal: at most ${formatPercent(result.gap)} above the optimum`;
  const simulated = result.simulated_seconds === undefined ? null
    : h('p', {}, `Simulated with transfers and contention: ${formatSeconds(result.simulated_seconds)}`,
        result.best_named !== undefined && result.best_named_simulated_seconds !== undefined ? ', ' : null,
        result.best_named !== undefined && result.best_named_simulated_seconds !== undefined ? name(result.best_named) : null,
        result.best_named_simulated_seconds !== undefined ? ` ${formatSeconds(result.best_named_simulated_seconds)}.` : '.');
  const rankColumns = [{label: 'Rank', left: true}, {label: 'Peak activations, in microbatches'}];
  const rankCells: TableCell[][] = result.peak_held_per_rank.map((value, rank) => [{text: `rank ${rank}`, value: rank}, held(value)]);
  return h('section', {id: 'synthesis'}, h('h2', {}, 'Synthesized schedule'),
    h('p', {class: 'verdict'}, `${formatSeconds(result.value_seconds)}. ${verdict}.`),
    h('p', {}, 'Found by: ', name(result.source), '. Lower bound: ', name(result.lower_bound_reason), '.'), simulated,
    chart('Found and named schedules', 'Gray: more activations than the limit. Times of the search, without contention.',
          csvButton('found and named schedules', () => csvOfTable(columns, cells)),
          bars(`${result.objective} of each schedule`, orders.map(one => ({
            label: one.name, text: formatSeconds(one.value_seconds),
            parts: [{label: one.name, color: one.name === 'found' ? '#E69F00' : one.fits ? '#56B4E9' : '#999999', value: one.value_seconds,
                     text: formatSeconds(one.value_seconds)}],
          })), bound > 0 ? {value: bound, text: `lower bound, ${formatSeconds(bound)}`} : undefined, true),
          table('Found and named schedules', columns, cells)),
    chart('Activations held by each rank', '', csvButton('activations of each rank', () => csvOfTable(rankColumns, rankCells)),
          bars('Peak activations of each rank', result.peak_held_per_rank.map((value, rank) => ({
            label: `rank ${rank}`, text: held(value).text,
            parts: [{label: 'activations', color: '#DDCC77', value: held(value).value, text: held(value).text}],
          })), result.memory_limit !== null && unit > 0 ? {value: result.memory_limit / unit, text: `limit, ${held(result.memory_limit).text} microbatches`} : undefined),
          details('Table', table('Activations of each rank', rankColumns, rankCells))));
}

export function plannersView(section: PlannersSection): HTMLElement {
  const {answers} = section.result;
  const columns = [{label: 'Algorithm', left: true}, {label: 'Schedule', left: true}, {label: 'Stages'}, {label: 'Planned step'}, {label: 'Simulated step'},
                   {label: 'Samples/s'}, {label: 'Peak memory'}, {label: 'Fits', left: true}, {label: 'Problem', left: true}];
  const cells: TableCell[][] = answers.map(one => [one.algorithm, one.schedule ?? '-', one.stages ? {text: String(one.stages.length), value: one.stages.length} : '-',
    typeof one.planned_batch_seconds === 'number' ? seconds(one.planned_batch_seconds) : '-', one.simulated ? seconds(one.simulated.batch_seconds) : '-',
    one.simulated ? {text: formatCount(one.simulated.samples_per_second), value: one.simulated.samples_per_second} : '-',
    one.simulated ? {text: formatBytes(one.simulated.peak_memory_bytes), value: one.simulated.peak_memory_bytes} : '-',
    one.simulated ? (one.simulated.fits_memory ? 'yes' : 'no') : '-', one.error ?? one.not_simulated ?? '']);
  const stageColumns = [{label: 'Algorithm', left: true}, {label: 'Stage'}, {label: 'First layer'}, {label: 'Last layer'}, {label: 'Replicas'}];
  const stageCells: TableCell[][] = answers.flatMap(one => (one.stages ?? []).map((stage, i) => [one.algorithm,
    ...[i, stage.first_layer, stage.end_layer - 1, stage.replicas].map(value => ({text: String(value), value}))]));
  const known = answers.filter(one => one.simulated);
  return h('section', {id: 'planners'}, h('h2', {}, 'Planners of papers'),
    chart('Step times', 'Simulated by weir; "planned" is the planner\u2019s own estimate.', csvButton('planners', () => csvOfTable(columns, cells)),
          known.length === 0 ? null : bars('Simulated step time of each plan', known.map(one => ({
            label: one.algorithm, text: formatSeconds(one.simulated!.batch_seconds),
            parts: [{label: one.algorithm, color: one.simulated!.fits_memory ? '#56B4E9' : '#999999', value: one.simulated!.batch_seconds,
                     text: formatSeconds(one.simulated!.batch_seconds)}]}))),
          table('Planners', columns, cells)),
    stageCells.length === 0 ? null : chart('Stages', '', csvButton('stages', () => csvOfTable(stageColumns, stageCells)), table('Stages of each plan', stageColumns, stageCells)));
}
