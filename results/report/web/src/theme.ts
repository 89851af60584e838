// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system prefers, until the user chooses.
import {h} from './dom.ts';

const listeners: (() => void)[] = [];
const dark = matchMedia('(prefers-color-scheme: dark)');
let chosen: 'light' | 'dark' | null = null;

let printing = false;

export function isPrinting(): boolean {
  return printing;
}

export function isDark(): boolean {
  if (printing) return false;
  return chosen === null ? dark.matches : chosen === 'dark';
}

export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

// Charts that are no longer on the page must not be drawn again.
export function themeListeners(): number {
  return listeners.length;
}
export function keepThemeListeners(count: number): void {
  listeners.length = count;
}

export const WIDE = 2400;
const wide = matchMedia(`(min-width: ${WIDE}px)`);

// Returns the size of text in pictures: larger in wide windows, like that of the page (style.css).
export function fontPixels(pixels: number): number {
  return wide.matches ? pixels * 1.25 : pixels;
}

// Pixels of a page of paper. The style scales pictures to the page, of which the
// program does not know the width.
export const PAGE_WIDTH = 720;

// Returns the width of a plot in this element.
export function plotWidth(element: HTMLElement): number {
  return printing ? PAGE_WIDTH : Math.max(element.clientWidth, 200);
}

// Returns the height of a plot: taller if it is wide, so that it does not become a strip.
export function plotHeight(height: number, width: number): number {
  return Math.round(Math.min(Math.max(height, width / 6), 1.75 * height));
}

export const fontOf = (pixels: number) => `${fontPixels(pixels)}px system-ui, sans-serif`;

const colors = new Map<string, string>();

// Returns a color of the style; computed styles are slow to read.
export function cssColor(variable: string): string {
  let color = colors.get(variable);
  if (color === undefined) {
    color = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
    colors.set(variable, color);
  }
  return color;
}

function apply(): void {
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  colors.clear();
  for (const listener of listeners) listener();
}

export function themeButton(): HTMLElement {
  const button = h('button', {type: 'button', class: 'theme'});
  const label = () => (button.textContent = isDark() ? 'Light' : 'Dark');
  button.addEventListener('click', () => {
    chosen = isDark() ? 'light' : 'dark';
    apply();
  });
  onTheme(label);
  label();
  return button;
}

export function startTheme(): void {
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  dark.addEventListener('change', () => { if (chosen === null) apply(); });
  // Paper is white, and timelines have another width on it.
  const print = (on: boolean) => {
    printing = on;
    apply();
  };
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
}
