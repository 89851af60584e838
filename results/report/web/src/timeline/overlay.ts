// SPDX-License-Identifier: Apache-2.0
// What is drawn over the slices: the axis, labels, the selection and the arrows
// of dependencies.
import {formatTime, niceStep} from '../format.ts';
import {isAction, isIdle} from '../kinds.ts';
import {cssColor, fontPixels, isPrinting} from '../theme.ts';
import type {Layout, PlacedRow} from './layout.ts';
import type {View} from './raster.ts';
import {NONE, type Slices} from './slices.ts';

export const AXIS = 24;  // height, in pixels

const FONT = 'system-ui, sans-serif';
const LEAST_LABEL = 18, LEAST_PRINTED_LABEL = 10, LEAST_ARROW = 26;
const MOST_ARROWS = 600;

export interface Scene {
  slices: Slices;
  layout: Layout;
  view: View;
  scroll: number;
  width: number;  // of the plot
  height: number;
  gutter: number;  // width of the labels of rows
  selected: number;
  hovered: number;
  twins: number[];  // the selected pass in other runs
  names: string[];  // [run]
}

export class Overlay {
  private readonly context: CanvasRenderingContext2D;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext('2d')!;
  }

  paint(scene: Scene, ratio: number): void {
    const width = scene.gutter + scene.width, height = AXIS + scene.height;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const context = this.context;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.axis(scene);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, scene.height);
    context.clip();
    context.translate(0, AXIS - scene.scroll);
    this.rowLabels(scene);
    context.beginPath();
    context.rect(scene.gutter, scene.scroll, scene.width, scene.height);
    context.clip();
    context.translate(scene.gutter, 0);
    this.arrows(scene);
    this.sliceLabels(scene);
    this.outline(scene, scene.hovered, 1.5);
    for (const twin of scene.twins) this.outline(scene, twin, 3);
    this.outline(scene, scene.selected, 3);
    context.restore();
    // Chromium prints the operations of a canvas, among them clearRect as a white rectangle over the slices, unless there
    // are pixels among them.
    if (isPrinting()) context.putImageData(context.getImageData(0, 0, 1, 1), 0, 0);
  }

  private x(scene: Scene, tick: number, shift = 0): number {
    return (tick - shift - scene.view.from) / (scene.view.to - scene.view.from) * scene.width;
  }

  private axis(scene: Scene): void {
    const context = this.context, {view, slices} = scene;
    const perPixel = (view.to - view.from) * slices.tick / scene.width;
    const step = niceStep(perPixel * 110);
    context.font = `${fontPixels(11)}px ${FONT}`;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    context.strokeStyle = cssColor('--line');
    context.lineWidth = 1;
    const first = Math.ceil(view.from * slices.tick / step - 1e-9);
    for (let k = first; k * step <= view.to * slices.tick; k++) {
      const x = Math.round(scene.gutter + this.x(scene, k * step / slices.tick)) + 0.5;
      context.beginPath();
      context.moveTo(x, AXIS - 6);
      context.lineTo(x, AXIS);
      context.stroke();
      context.fillStyle = cssColor('--muted');
      const text = formatTime(k * step, step, view.to * slices.tick);
      if (x + context.measureText(text).width + 4 < scene.gutter + scene.width) context.fillText(text, x + 3, AXIS / 2);
    }
  }

  private visible(scene: Scene): PlacedRow[] {
    return scene.layout.rows.filter(row =>
      row.top + row.height > scene.scroll && row.top < scene.scroll + scene.height);
  }

  private rowLabels(scene: Scene): void {
    const context = this.context;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    context.fillStyle = cssColor('--text');
    for (const placed of this.visible(scene)) {
      if (placed.label === '') continue;
      context.font = `${Math.min(fontPixels(12), placed.height - 1)}px ${FONT}`;
      context.fillText(fitted(context, placed.label, scene.gutter - 8), 4, placed.top + placed.height / 2);
    }
    context.font = `600 ${fontPixels(12)}px ${FONT}`;
    for (const {panel, top} of scene.layout.headings) {
      const room = scene.gutter + scene.width - 8;
      const text = (same: string) => scene.names[panel.run] +
        (panel.pipelines > 1 ? ` \u2014 one of ${panel.pipelines} pipelines${same}` : '') +
        (panel.replica > 0 || panel.tensor_rank > 0 ? ` \u2014 replica ${panel.replica}, tensor rank ${panel.tensor_rank}` : '');
      const long = text(' that do the same');
      const shown = context.measureText(long).width <= room ? long : fitted(context, text(''), room);
      context.fillText(shown, 4, top + fontPixels(12));
    }
  }

  private eachVisible(scene: Scene, least: number, visit: (i: number, x: number, width: number, row: PlacedRow) => void): void {
    const {slices, view} = scene;
    const leastTicks = least * (view.to - view.from) / scene.width;
    for (const placed of this.visible(scene)) {
      const {row} = placed;
      const {shift} = row;
      const begin = slices.firstAfter(row, view.from + shift), end = Math.min(slices.firstAfter(row, view.to + shift) + 1, row.end);
      // Most slices of such a row are too narrow.
      if ((end - begin) * least > 8 * scene.width) continue;
      for (let i = begin; i < end; i++) {
        if (slices.end[i] - slices.start[i] < leastTicks) continue;
        const x = this.x(scene, slices.start[i], shift);
        visit(i, x, this.x(scene, slices.end[i], shift) - x, placed);
      }
    }
  }

  private sliceLabels(scene: Scene): void {
    const context = this.context, {slices} = scene;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.font = `${fontPixels(11)}px ${FONT}`;
    context.fillStyle = '#111';
    this.eachVisible(scene, isPrinting() ? LEAST_PRINTED_LABEL : LEAST_LABEL, (i, x, width, placed) => {
      if (!isAction(slices.kind[i]) || placed.height < 12) return;
      const left = Math.max(x, 0), right = Math.min(x + width, scene.width);
      const long = slices.name(i), short = String(slices.microbatch(i));
      const room = right - left - 4;
      const text = context.measureText(long).width <= room ? long : context.measureText(short).width <= room ? short : '';
      if (text) context.fillText(text, (left + right) / 2, placed.top + placed.height / 2 + 0.5);
    });
  }

  private arrows(scene: Scene): void {
    const {slices, layout} = scene;
    const placedOf = new Map(layout.rows.map(placed => [placed.row, placed]));
    let drawn = 0;
    const draw = (i: number, strong: boolean) => {
      const input = slices.input(i);
      if (input === NONE || drawn++ > MOST_ARROWS) return;
      const from = placedOf.get(slices.rowOf(input)), to = placedOf.get(slices.rowOf(i));
      if (!from || !to) return;
      this.arrow(this.x(scene, slices.end[input], from.row.shift), from.top + from.height / 2,
                 this.x(scene, slices.start[i], to.row.shift), to.top + to.height / 2, strong);
    };
    this.eachVisible(scene, LEAST_ARROW, i => {
      if (isAction(slices.kind[i])) draw(i, false);
    });
    for (let i = scene.selected, n = 0; i !== NONE && n < 400; n++) {
      draw(i, true);
      i = this.predecessor(slices, i);
    }
  }

  // Returns the slice that delayed this one: the previous slice of its row or
  // its input, whichever ended last.
  private predecessor(slices: Slices, i: number): number {
    if (isIdle(slices.kind[i])) return NONE;
    const row = slices.rowOf(i), input = slices.input(i);
    let before = i - 1;
    while (before >= row.begin && isIdle(slices.kind[before])) before--;
    if (before < row.begin) return input;
    return input !== NONE && slices.end[input] > slices.end[before] ? input : before;
  }

  private arrow(x0: number, y0: number, x1: number, y1: number, strong: boolean): void {
    const context = this.context;
    context.strokeStyle = context.fillStyle = cssColor(strong ? '--accent' : '--arrow');
    context.lineWidth = strong ? 2 : 1;
    const middle = Math.max((x1 - x0) / 2, 8);
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + middle, y0, x1 - middle, y1, x1 - 1, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 5, y1 - 3);
    context.lineTo(x1 - 5, y1 + 3);
    context.fill();
  }

  private outline(scene: Scene, i: number, width: number): void {
    if (i === NONE) return;
    const row = scene.slices.rowOf(i);
    const placed = scene.layout.rows.find(one => one.row === row);
    if (!placed) return;
    const x0 = Math.max(this.x(scene, scene.slices.start[i], row.shift), -4);
    const x1 = Math.min(this.x(scene, scene.slices.end[i], row.shift), scene.width + 4);
    this.context.strokeStyle = cssColor('--text');
    this.context.lineWidth = width;
    this.context.strokeRect(x0, placed.top - 0.5, Math.max(x1 - x0, 2), placed.height + 1);
  }
}

function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  // Long names are cut before they are measured.
  let shown = text.slice(0, 200);
  if (shown.length === text.length && context.measureText(text).width <= room) return text;
  while (shown.length > 1 && context.measureText(`${shown}\u2026`).width > room) {
    shown = shown.slice(0, -Math.max(1, Math.floor(shown.length / 12)));
  }
  return `${shown}\u2026`;
}
