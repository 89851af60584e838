// SPDX-License-Identifier: Apache-2.0
// Paints rows of slices without a GPU: one line of pixels per row, which is
// copied to the height of the row. The work per frame depends on the pixels, not
// on the number of slices.
import {KINDS} from '../kinds.ts';
import type {PlacedRow} from './layout.ts';
import type {Slices} from './slices.ts';

export interface Colors {
  background: number;
  kinds: Int32Array;  // [kind]
  dimmed: Int32Array;  // [kind], of slices that a search does not match
}

// "#56B4E9" -> ABGR
export function pixelOf(color: string): number {
  const value = parseInt(color.slice(1), 16);
  return (255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16);
}

function mix(a: string, b: string, part: number): string {
  const channel = (color: string, at: number) => parseInt(color.slice(at, at + 2), 16);
  return '#' + [1, 3, 5].map(at =>
    Math.round(channel(a, at) * part + channel(b, at) * (1 - part)).toString(16).padStart(2, '0')).join('');
}

export function colorsFor(dark: boolean, background: string): Colors {
  const colors: Colors = {background: pixelOf(background), kinds: new Int32Array(256), dimmed: new Int32Array(256)};
  for (const [number, kind] of Object.entries(KINDS)) {
    const color = dark ? kind.dark : kind.light;
    colors.kinds[Number(number)] = pixelOf(color);
    colors.dimmed[Number(number)] = pixelOf(mix(color, background, 0.22));
  }
  return colors;
}

export interface View {
  from: number;  // ticks
  to: number;
}

export class Raster {
  private pixels = new Int32Array(0);
  private image: ImageData | null = null;
  private readonly context: CanvasRenderingContext2D;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly slices: Slices) {
    this.context = canvas.getContext('2d', {alpha: false})!;
  }

  resize(width: number, height: number): void {
    if (this.canvas.width === width && this.canvas.height === height && this.image) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = this.context.createImageData(width, height);
    this.pixels = new Int32Array(this.image.data.buffer);
  }

  // Paints the rows that are visible below `scroll`. `ratio`: device pixels per
  // pixel. `matches`: 1 for slices to show in full color; null: all.
  paint(rows: PlacedRow[], view: View, scroll: number, ratio: number, colors: Colors, matches: Uint8Array | null): void {
    const {width, height} = this.canvas;
    this.pixels.fill(colors.background);
    for (const {row, top, height: rowHeight} of rows) {
      const y0 = Math.max(Math.round((top - scroll) * ratio), 0);
      const y1 = Math.min(Math.round((top - scroll + rowHeight) * ratio), height);
      if (y1 <= y0) continue;
      const base = y0 * width;
      const perPixel = (view.to - view.from) / width;
      const overview = matches === null && row.end - row.begin > 2 * width ? this.slices.overviewOf(row) : null;
      if (overview && perPixel >= this.slices.endTicks / overview.length) {
        this.lineFromOverview(overview, view.from + row.shift, perPixel, base, colors);
      } else {
        this.line(row.begin, row.end, view.from + row.shift, perPixel, base, colors, matches);
      }
      for (let y = y0 + 1; y < y1; y++) this.pixels.copyWithin(y * width, base, base + width);
    }
    this.context.putImageData(this.image!, 0, 0);
  }

  private lineFromOverview(overview: Uint8Array, from: number, perPixel: number, base: number, colors: Colors): void {
    const width = this.canvas.width, scale = overview.length / this.slices.endTicks;
    for (let x = 0; x < width; x++) {
      const kind = overview[Math.floor((from + (x + 0.5) * perPixel) * scale)];
      if (kind > 0) this.pixels[base + x] = colors.kinds[kind - 1];
    }
  }

  // The slice at the center of each pixel.
  private line(begin: number, end: number, from: number, perPixel: number, base: number, colors: Colors,
               matches: Uint8Array | null): void {
    const {start, end: ends, kind} = this.slices;
    const width = this.canvas.width;
    let i = begin;
    for (let x = 0; x < width; x++) {
      const tick = from + (x + 0.5) * perPixel;
      if (i < end && ends[i] <= tick) {
        // Gallops, then searches: the next slice is usually near.
        let step = 1;
        while (i + step < end && ends[i + step] <= tick) step <<= 1;
        let low = i + (step >> 1), high = Math.min(i + step, end);
        while (low < high) {
          const middle = (low + high) >> 1;
          if (ends[middle] <= tick) low = middle + 1; else high = middle;
        }
        i = low;
      }
      if (i >= end) break;
      if (start[i] > tick) continue;
      // A line between slices that are wide enough.
      const table = matches === null || matches[i] === 1 ? colors.kinds : colors.dimmed;
      const boundary = tick - start[i] < perPixel && (ends[i] - start[i]) > 6 * perPixel;
      this.pixels[base + x] = boundary ? colors.background : table[kind[i]];
    }
  }
}
