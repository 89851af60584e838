// SPDX-License-Identifier: Apache-2.0
// Key figures: cards for one run, a table for several.
import {chart, csvButton, type CsvRow, h, name, table, type TableCell} from './dom.ts';
import type {Report} from './load.ts';
import type {Cell, FiguresSection} from './model.ts';

function intervalText(cell: Cell): string {
  return cell.interval ? `${cell.interval} in 9 of 10 cases` : '';
}

// The page's own numbers, for tests and scripts.
function dataAttributes(json: string, run: number, cell: Cell): Record<string, string> {
  return {'data-json': json, 'data-run': String(run), 'data-value': cell.value === null ? '' : String(cell.value)};
}

function csvRows(section: FiguresSection, names: string[]): CsvRow[] {
  const rows: CsvRow[] = [['figure', 'unit', 'run', 'value', 'low', 'high', 'text']];
  for (const row of section.rows) {
    row.cells.forEach((cell, run) =>
      rows.push([row.label, row.unit, names[run], cell.value, cell.low, cell.high, cell.text]));
  }
  return rows;
}

function cards(section: FiguresSection): HTMLElement {
  return h('dl', {class: 'cards'}, ...section.rows.filter(row => row.cells[0].text !== '-').map(row => {
    const cell = row.cells[0];
    return h('div', {class: 'card'}, h('dt', {}, row.label),
             h('dd', {}, h('span', {class: 'value', ...dataAttributes(row.json, 0, cell)}, cell.text),
               cell.interval ? h('span', {class: 'interval'}, intervalText(cell)) : null));
  }));
}

// The best value; null if all are equal or there is none.
function best(row: FiguresSection['rows'][0]): number | null {
  const values = row.cells.map(cell => cell.value).filter(value => value !== null);
  const low = Math.min(...values), high = Math.max(...values);
  if (row.better === '' || !(low < high)) return null;
  return row.better === 'lower' ? low : high;
}

// `ranked`: marks the best of each row.
function comparison(section: FiguresSection, names: string[], ranked: boolean): HTMLElement {
  const columns = [{label: 'Figure', left: true}, ...names.map(label => ({label}))];
  const rows: TableCell[][] = section.rows.map(row => {
    const winner = ranked ? best(row) : null;
    return [row.label, ...row.cells.map((cell, run) => {
      const element = h('span', {}, h('span', dataAttributes(row.json, run, cell), cell.text));
      if (winner !== null && cell.value === winner) element.append(h('span', {class: 'mark'}, ' best'));
      if (cell.interval) element.append(h('span', {class: 'interval'}, cell.interval));
      return {text: cell.text, value: cell.value, element};
    })];
  });
  return table('Key figures of all runs; small print: the interval that holds in 9 of 10 cases', columns, rows, false);
}

function verdict(section: FiguresSection, names: string[]): HTMLElement {
  const of = (json: string) => section.rows.find(row => row.json === json)?.cells;
  const limited = of('memory_capacity_bytes') !== undefined;
  if (section.fastest === null) return h('p', {class: 'verdict'}, 'None of the runs fits in memory.');
  const staleness = of('staleness_updates')?.[section.fastest].value ?? 0;
  return h('p', {class: 'verdict'}, limited ? 'Fastest that fits in memory: ' : 'Fastest: ', name(names[section.fastest]),
           staleness > 0 ? `, which trains with weights that are up to ${staleness} update${staleness > 1 ? 's' : ''} old` : null);
}

export function figuresView(section: FiguresSection, report: Report): HTMLElement {
  const names = report.header.runs.map(run => run.name);
  const several = names.length > 1;
  const csv = csvButton('the key figures', () => csvRows(section, names));
  const root = h('section', {id: 'figures'}, h('h2', {}, several ? 'Comparison' : 'Key figures'));
  // A prediction and its execution are no alternatives.
  const ranked = !report.header.sections.some(other => other.type === 'execution');
  if (several && ranked) root.append(verdict(section, names));
  root.append(chart(several ? 'All figures' : 'Figures', '', csv,
                    several ? comparison(section, names, ranked) : cards(section)));
  section.texts.forEach((texts, run) => {
    const list = h('dl', {class: 'texts'}, ...texts.flatMap(({label, text}) =>
      [h('dt', {}, label), h('dd', {}, name(text))]));
    if (several) {
      const box = h('details', {}, h('summary', {}, 'About ', name(names[run])), list);
      root.append(box);
    } else {
      root.append(list);
    }
  });
  if (section.warnings.length > 0) {
    root.append(h('div', {class: 'warnings'}, h('h3', {}, 'Warnings'),
                  h('ul', {}, ...section.warnings.map(text => h('li', {}, name(text))))));
  }
  return root;
}
