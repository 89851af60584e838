// SPDX-License-Identifier: Apache-2.0
// A map of the whole run, which shows and moves what is in view.
import {h} from '../dom.ts';
import type {PlacedRow} from './layout.ts';
import {type Colors, Raster, type View} from './raster.ts';
import type {Slices} from './slices.ts';

const HEIGHT = 44;

export class RunMap {
  private readonly canvas = h('canvas', {class: 'tl-map-canvas', 'aria-hidden': 'true'});
  private readonly window = h('div', {class: 'tl-map-view'});
  readonly element = h('div', {class: 'tl-map'}, this.canvas, this.window);
  private readonly raster: Raster;

  // Calls `move` with the part of the run to be in the middle of the view.
  constructor(slices: Slices, move: (part: number) => void) {
    this.raster = new Raster(this.canvas, slices);
    const jump = (event: PointerEvent) => {
      const bounds = this.element.getBoundingClientRect();
      move((event.clientX - bounds.left) / bounds.width);
    };
    let moving = false;
    this.element.addEventListener('pointerdown', event => {
      moving = true;
      this.element.setPointerCapture(event.pointerId);
      jump(event);
    });
    this.element.addEventListener('pointermove', event => { if (moving) jump(event); });
    this.element.addEventListener('pointerup', () => (moving = false));
    this.element.addEventListener('pointercancel', () => (moving = false));
  }

  place(left: number, width: number): void {
    this.element.style.marginLeft = `${left}px`;
    this.element.style.width = `${width}px`;
  }

  // The rows of passes, each as high as their number allows.
  paint(placed: PlacedRow[], width: number, whole: View, ratio: number, colors: Colors, matches: Uint8Array | null): void {
    const rows = placed.filter(({row}) => row.lane === 'compute');
    const height = HEIGHT / rows.length;
    this.raster.resize(Math.round(width * ratio), Math.round(HEIGHT * ratio));
    this.raster.paint(rows.map(({row}, i) => ({row, top: i * height, height, label: ''})), whole, 0, ratio, colors, matches);
  }

  show(view: View, whole: View): void {
    this.window.style.left = `${100 * view.from / whole.to}%`;
    this.window.style.width = `${100 * (view.to - view.from) / whole.to}%`;
  }
}
