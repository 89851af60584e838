// SPDX-License-Identifier: Apache-2.0
// Elements. Text goes into the page only as text nodes and attributes, never as
// HTML.

type Child = Node | string | null;
type Props = Record<string, string | number | boolean | ((event: any) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

// A name from a file: its direction does not affect the text around it. A long
// one may be broken between the words of identifiers.
export function name(text: string): HTMLElement {
  const words = text.split(/(?<=[._:=\]])(?=[a-z[])/i);
  return h('bdi', {class: text.length > 60 ? 'name long' : 'name'},
           ...words.flatMap((word, i): Child[] => (i === 0 ? [word] : [h('wbr'), word])));
}

// A command line: a word moves to the next line as a whole if it fits there.
export function commandLine(text: string): HTMLElement {
  return h('code', {class: 'command'}, ...text.split(' ').flatMap((word, i): Child[] => [i === 0 ? null : ' ', h('span', {class: 'word'}, word)]));
}

export function style(element: HTMLElement, styles: Partial<CSSStyleDeclaration>): HTMLElement {
  Object.assign(element.style, styles);
  return element;
}

// A color of bars and legends: another one where it does not suit a dark page (style.css).
export const barColor = (color: string) => `var(--bar-${color.slice(1).toLowerCase()}, ${color})`;

// ---- CSV

export type CsvRow = (string | number | null | undefined)[];

function csvField(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  // A spreadsheet would run such a text as a formula.
  const text = /^[=+\-@\t\r']/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvText = (rows: Iterable<CsvRow>): string => {
  const lines: string[] = [];
  for (const row of rows) lines.push(row.map(csvField).join(','));
  return lines.join('\n') + '\n';
};

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h('textarea', {'aria-hidden': 'true', class: 'offscreen'});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

// Copies what `rows` returns; the page keeps the last copy for tests.
export function csvButton(what: string, rows: () => Iterable<CsvRow>): HTMLElement {
  const label = 'Copy CSV';
  const button = h('button', {type: 'button', class: 'csv', 'aria-label': `Copy CSV: ${what}`}, label);
  button.addEventListener('click', async () => {
    const text = csvText(rows());
    (window as any).weirLastCsv = text;
    await copyText(text);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}

// ---- tables

export interface TableColumn {
  label: string;
  left?: boolean;
}
// A cell with a number is sorted by it.
export type TableCell = string | {text: string; value: number | null; mark?: string; element?: HTMLElement};

export const cellText = (cell: TableCell) => (typeof cell === 'string' ? cell : cell.text);
const cellValue = (cell: TableCell) => (typeof cell === 'string' ? null : cell.value);

const WIDE_COLUMNS = 10;  // of tables that are printed with turned heads

// A table whose rows can be sorted by clicking on the headers of columns.
export function table(caption: string, columns: TableColumn[], rows: TableCell[][], sortable = true): HTMLElement {
  const body = h('tbody');
  const show = (sorted: TableCell[][]) => body.replaceChildren(...sorted.map(row => {
    const tr = h('tr');
    row.forEach((cell, i) => {
      const props: Props = columns[i].left ? {class: 'left'} : {};
      const element = i === 0 ? h('th', {...props, scope: 'row'}) : h('td', props);
      if (typeof cell !== 'string' && cell.element) element.append(cell.element);
      else element.append(i === 0 ? name(cellText(cell)) : cellText(cell));
      if (cellText(cell).length > 40) element.classList.add('text');
      if (cellValue(cell) !== null) element.classList.add('number');
      if (typeof cell !== 'string' && cell.mark) element.append(' ', h('span', {class: 'mark'}, cell.mark));
      tr.append(element);
    });
    return tr;
  }));
  const heads = columns.map((column, i) => {
    const th = h('th', {scope: 'col', class: column.left ? 'left' : ''});
    if (!sortable) {
      th.append(name(column.label));
      return th;
    }
    const button = h('button', {type: 'button', class: 'sort'}, name(column.label));
    button.addEventListener('click', () => {
      const ascending = th.getAttribute('aria-sort') !== 'ascending';
      heads.forEach(other => other.removeAttribute('aria-sort'));
      th.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
      const sign = ascending ? 1 : -1;
      show([...rows].sort((a, b) => {
        const x = cellValue(a[i]), y = cellValue(b[i]);
        if (x !== null && y !== null) return sign * (x - y);
        return sign * cellText(a[i]).localeCompare(cellText(b[i]));
      }));
    });
    th.append(button);
    return th;
  });
  show(rows);
  const heading = h('thead', {}, h('tr', {}, ...heads));
  return scrollable(h('table', {class: columns.length >= WIDE_COLUMNS ? 'wide' : '', style: `--columns: ${columns.length}`}, h('caption', {}, caption), heading, body), caption);
}

// Wide content scrolls inside its own box, also with the keyboard.
export function scrollable(content: HTMLElement, label: string): HTMLElement {
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label}, content);
}

export function csvOfTable(columns: TableColumn[], rows: TableCell[][]): CsvRow[] {
  return [columns.map(column => column.label),
          ...rows.map(row => row.map(cell => (cellValue(cell) ?? cellText(cell))))];
}

export function details(summary: string, ...children: Child[]): HTMLDetailsElement {
  return h('details', {}, h('summary', {}, summary), ...children);
}

// A titled part of a section with its CSV.
export function chart(title: string, note: string, csv: HTMLElement | null, ...children: Child[]): HTMLElement {
  return h('div', {class: 'chart'},
           h('div', {class: 'chart-head'}, h('h3', {}, title), csv),
           note ? h('p', {class: 'note'}, note) : null, ...children);
}

// Key figures of a document.
export function cards(figures: [label: string, value: string, note: string][]): HTMLElement {
  return h('dl', {class: 'cards'}, ...figures.map(([label, value, note]) =>
    h('div', {class: 'card'}, h('dt', {}, label),
      h('dd', {}, h('span', {class: 'value'}, name(value)), note ? h('span', {class: 'interval'}, name(note)) : null))));
}

export function select(label: string, options: string[], chosen: number, onchange: (index: number) => void): HTMLElement {
  const element = h('select', {}, ...options.map((text, i) => h('option', {value: i, selected: i === chosen}, text)));
  element.addEventListener('change', () => onchange(element.selectedIndex));
  return h('label', {class: 'choice'}, label, ' ', element);
}

export function legend(items: [text: string, color: string][]): HTMLElement {
  return h('ul', {class: 'legend'}, ...items.map(([text, color]) =>
    h('li', {}, style(h('span', {class: 'swatch', 'aria-hidden': 'true'}), {background: barColor(color)}), text)));
}
