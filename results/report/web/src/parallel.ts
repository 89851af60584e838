// SPDX-License-Identifier: Apache-2.0
// Parallel coordinates: a line per row through a scale per field.
import {h} from './dom.ts';
import {seriesColor} from './palette.ts';
import {fontPixels, onTheme, WIDE} from './theme.ts';

export interface Dimension {
  label: string;
  // [row]; text is ordered as it appears, numbers by value.
  values: (number | string | null)[];
  format?: (value: number) => string;
}

const SVG = 'http://www.w3.org/2000/svg';
const LEAST_DISTANCE = 110, MOST_DISTANCE = 320, MARGIN = 40, TOP = 44, BOTTOM = 20, SIDE = 55, HEIGHT = 300, LABEL = 15;

function s(tag: string, attributes: Record<string, string | number>, text = ''): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text) element.textContent = text;
  return element;
}

const short = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

interface Scale {
  y: (row: number) => number | null;
  ticks: {y: number; text: string}[];
}

const textOf = ({format = String}: Dimension, value: number | string) => (typeof value === 'number' ? format(value) : value);

function scaleOf(dimension: Dimension): Scale {
  const {values} = dimension;
  const known = values.filter(value => value !== null);
  const inner = HEIGHT - TOP - BOTTOM;
  const distinct = [...new Set(known)];
  const numeric = known.every(value => typeof value === 'number');
  if (numeric) distinct.sort((a, b) => (a as number) - (b as number));
  if (!numeric || distinct.length <= 8) {
    const place = new Map(distinct.map((value, i) =>
      [value, HEIGHT - BOTTOM - (distinct.length === 1 ? 0.5 : i / (distinct.length - 1)) * inner]));
    // Leaves out labels that would overlap.
    const every = Math.ceil(LABEL * (distinct.length - 1) / inner) || 1;
    return {y: row => (values[row] === null ? null : place.get(values[row]!)!),
            ticks: distinct.filter((_, i) => i % every === 0).map(value => ({y: place.get(value)!,
                                           text: textOf(dimension, value)}))};
  }
  const low = distinct[0] as number, high = distinct[distinct.length - 1] as number;
  const at = (value: number) => HEIGHT - BOTTOM - (value - low) / (high - low) * inner;
  return {y: row => (values[row] === null ? null : at(values[row] as number)),
          ticks: [low, (low + high) / 2, high].map(value => ({y: at(value), text: textOf(dimension, value)}))};
}

// Returns the distance of the axes with which they fill the window.
function distanceOf(axes: number): number {
  const {clientWidth} = document.documentElement;
  const page = Math.min(clientWidth, clientWidth >= WIDE ? 3200 : 1800);  // as the width of "main" in style.css
  const available = page / fontPixels(1) - MARGIN - 2 * SIDE;
  return Math.round(Math.min(Math.max(available / Math.max(axes - 1, 1), LEAST_DISTANCE), MOST_DISTANCE));
}

// `series` is the color of each row; `large` rows have thick lines. A line shows
// its text and all values when it is pointed at.
export function parallelCoordinates(label: string, dimensions: Dimension[], series: number[], texts: string[],
                                    large: boolean[]): HTMLElement {
  const distance = distanceOf(dimensions.length);
  const width = 2 * SIDE + distance * (dimensions.length - 1);
  const svg = s('svg', {viewBox: `0 0 ${width} ${HEIGHT}`, width: fontPixels(width), height: fontPixels(HEIGHT), role: 'img',
                        'aria-label': `${label}; the table has the same values`, class: 'parallel'});
  const lines = s('g', {fill: 'none'});
  const scales = dimensions.map(scaleOf);
  const rows = series.map((_, row) => row).sort((a, b) => Number(large[a]) - Number(large[b]));
  const paint = () => {
    lines.replaceChildren(...rows.map(row => {
      const points: string[] = [];
      scales.forEach((scale, i) => {
        const y = scale.y(row);
        if (y !== null) points.push(`${SIDE + i * distance},${y.toFixed(1)}`);
      });
      const line = s('polyline', {points: points.join(' '), stroke: seriesColor(series[row]),
                                  'stroke-width': large[row] ? 4 : 1.6, 'stroke-opacity': large[row] ? 1 : 0.75,
                                  'stroke-linejoin': 'round', class: 'parallel-line'});
      const fields = dimensions.flatMap(dimension => {
        const value = dimension.values[row];
        return value === null ? [] : [`${dimension.label} ${textOf(dimension, value)}`];
      });
      line.append(s('title', {}, `${texts[row]}\n${fields.join(', ')}`));
      return line;
    }));
  };
  paint();
  onTheme(paint);
  svg.append(lines);
  dimensions.forEach((dimension, i) => {
    const x = SIDE + i * distance;
    svg.append(s('line', {x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM, class: 'parallel-axis'}));
    // Two rows of titles, so that they do not touch.
    svg.append(s('text', {x, y: i % 2 === 0 ? 14 : 30, 'text-anchor': 'middle', class: 'parallel-title'}, short(dimension.label, 26)));
    for (const {y, text} of scales[i].ticks) {
      const shown = short(text, 14);
      const tick = s('text', {x: x + 5, y: y + 4, class: 'parallel-tick'}, shown);
      if (shown !== text) tick.append(s('title', {}, text));
      svg.append(tick);
    }
  });
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label}, svg as unknown as HTMLElement);
}
