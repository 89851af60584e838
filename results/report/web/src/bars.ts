// SPDX-License-Identifier: Apache-2.0
// Horizontal bars of parts. A table next to them has the same values.
import {barColor, h, name, style} from './dom.ts';

export interface Part {
  label: string;
  color: string;
  value: number;
  text: string;
}
export interface Bar {
  label: string;
  parts: Part[];
  text: string;  // at its end
  begin?: number;  // where the first part begins; default 0
}

const MANY = 10;  // rows

// `wide`: the texts are long. `limit`: a line across all bars, such as a capacity.
export function bars(label: string, rows: Bar[], limit?: {value: number; text: string}, wide = false): HTMLElement {
  const ends = rows.map(row => (row.begin ?? 0) + row.parts.reduce((sum, part) => sum + part.value, 0));
  const most = Math.max(...ends, limit?.value ?? 0) || 1;
  const percent = (value: number) => `${100 * value / most}%`;
  const list = h('div', {class: wide ? 'bars wide' : 'bars', role: 'img', 'aria-label': `${label}; the table has the same values`});
  // A long list scrolls, also with the keyboard.
  if (rows.length >= MANY) list.tabIndex = 0;
  for (const row of rows) {
    const track = h('div', {class: 'bar-track'});
    let at = row.begin ?? 0;
    for (const part of row.parts) {
      if (part.value <= 0) continue;
      track.append(style(h('span', {class: 'bar-part', title: `${part.label}: ${part.text}`}),
                         {left: percent(at), width: percent(part.value), background: barColor(part.color)}));
      at += part.value;
    }
    if (limit) track.append(style(h('span', {class: 'bar-limit', title: limit.text}), {left: percent(limit.value)}));
    list.append(h('div', {class: 'bar-row'}, h('span', {class: 'bar-label', title: row.label}, name(row.label)), track,
                  h('span', {class: 'bar-text'}, row.text)));
  }
  const box = h('div', {class: 'bars-box'}, list);
  if (limit) box.append(h('p', {class: 'note'}, `Line: ${limit.text}`));
  return box;
}
