// SPDX-License-Identifier: Apache-2.0
// Colors and shapes of series, distinct for all kinds of color vision (Okabe
// and Ito; yellow is left out, as it is too faint on white).
import {cssColor, isDark} from './theme.ts';

const LIGHT = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#8A6D00', '#2F8FC4', '#5B5B5B', '#661100'];
const DARK = ['#56B4E9', '#E8793A', '#2FC79A', '#DE9BC0', '#E3C84B', '#9AD3F5', '#BFBFBF', '#D98880'];

export type Shape = 'circle' | 'square' | 'triangle' | 'diamond' | 'cross';
const SHAPES: Shape[] = ['circle', 'square', 'triangle', 'diamond', 'cross'];

export const seriesColor = (i: number) => (isDark() ? DARK : LIGHT)[i % LIGHT.length];
export const seriesShape = (i: number) => SHAPES[i % SHAPES.length];

// The color that barColor gives on the page, for a canvas.
export const canvasColor = (color: string) => cssColor(`--bar-${color.slice(1).toLowerCase()}`) || color;

// Returns where a value is from `low` to `high`; they are the same if they differ by rounding errors.
export function heatPart(value: number, low: number, high: number): number {
  return high - low > 1e-6 * Math.max(Math.abs(low), Math.abs(high)) ? (value - low) / (high - low) : 0.4;
}

// A scale from pale to dark blue, which prints in gray and suits all kinds of
// color vision; reversed where a dark page needs it.
export function heat(part: number): {background: string; text: string} {
  const stops = isDark() ? [[22, 40, 62], [20, 84, 136], [86, 168, 222], [222, 240, 250]]
                         : [[240, 247, 252], [158, 202, 232], [49, 126, 184], [8, 48, 96]];
  const at = Math.max(0, Math.min(1, part)) * (stops.length - 1);
  const i = Math.min(Math.floor(at), stops.length - 2);
  const mixed = stops[i].map((value, c) => Math.round(value + (at - i) * (stops[i + 1][c] - value)));
  const light = mixed.map(value => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
  return {background: `rgb(${mixed.join(' ')})`, text: luminance > 0.179 ? '#000000' : '#ffffff'};
}

export function drawShape(context: CanvasRenderingContext2D, shape: Shape, x: number, y: number, r: number): void {
  context.beginPath();
  if (shape === 'circle') context.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === 'square') context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else if (shape === 'triangle') {
    context.moveTo(x, y - 1.15 * r);
    context.lineTo(x + 1.1 * r, y + 0.85 * r);
    context.lineTo(x - 1.1 * r, y + 0.85 * r);
  } else if (shape === 'diamond') {
    context.moveTo(x, y - 1.25 * r);
    context.lineTo(x + 1.1 * r, y);
    context.lineTo(x, y + 1.25 * r);
    context.lineTo(x - 1.1 * r, y);
  } else {
    const w = 0.4 * r;
    context.rect(x - w, y - 1.2 * r, 2 * w, 2.4 * r);
    context.rect(x - 1.2 * r, y - w, 2.4 * r, 2 * w);
  }
  context.closePath();
  context.fill();
}
