// SPDX-License-Identifier: Apache-2.0
// Values of the ranks, and the configuration.
import {chart, csvButton, csvOfTable, details, h, name, scrollable, select, table, type TableCell} from './dom.ts';
import {formatBytes, formatCount, formatSeconds} from './format.ts';
import type {Report} from './load.ts';
import type {ConfigurationSection, RanksSection} from './model.ts';

export function ranksView(section: RanksSection, report: Report): HTMLElement | null {
  const names = report.header.runs.map(run => run.name);
  const known = section.runs.map((_, run) => run).filter(run => section.runs[run].length > 0);
  if (known.length === 0) return null;
  let chosen = known[0];
  const columns = [{label: 'Rank', left: true}, {label: 'Busy'}, {label: 'Idle'}, {label: 'Exposed communication'},
                   {label: 'Peak memory'}, {label: 'Microbatches in flight'}, {label: 'Weight versions'}];
  let cells: TableCell[][] = [];
  const body = h('div');
  const show = () => {
    const seconds = (value: number) => ({text: formatSeconds(value), value});
    // Recorded runs and given costs have no such values.
    const orUnknown = (value: number, format: (value: number) => string) => (value === 0 ? '-' : {text: format(value), value});
    cells = section.runs[chosen].map(rank => [
      {text: `rank ${rank.rank}`, value: rank.rank}, seconds(rank.busy_seconds), seconds(rank.idle_seconds),
      seconds(rank.exposed_communication_seconds), orUnknown(rank.peak_memory_bytes, formatBytes),
      orUnknown(rank.peak_activation_microbatches, formatCount), orUnknown(rank.weight_versions, String)]);
    body.replaceChildren(table('Values of each pipeline rank', columns, cells));
  };
  show();
  return h('section', {id: 'ranks'}, h('h2', {}, 'Ranks'),
           chart('Values of each pipeline rank', 'Over the whole run; each value is the maximum over the GPUs of a rank.',
                 csvButton('the ranks', () => csvOfTable(columns, cells)),
                 known.length > 1 ? select('Run', known.map(run => names[run]), 0, i => { chosen = known[i]; show(); }) : null,
                 body));
}

export function configurationView(section: ConfigurationSection, report: Report): HTMLElement {
  const root = h('section', {id: 'configuration'}, h('h2', {}, 'Configuration'));
  section.runs.forEach((run, i) => {
    const label = report.header.runs[i].name;
    const made = [run.weir_version && `weir ${run.weir_version}`, run.git_revision && `(${run.git_revision})`,
                  run.simgrid_version && `SimGrid ${run.simgrid_version}`, run.method && `method: ${run.method}`,
                  run.gpu_name && `measured on ${run.gpu_name}`].filter(Boolean).join(', ').replace(', (', ' (');
    root.append(h('p', {class: 'note'}, name(label), ': ', name(made)));
    if (run.scenario === '') return;
    root.append(details(`Scenario of ${label}`,
                        scrollable(h('pre', {}, run.scenario), `Scenario of ${label}`)));
  });
  return root;
}
