// SPDX-License-Identifier: Apache-2.0
// The timeline of all ranks: zoom, pan, search, details and a map of the run.
import {h} from '../dom.ts';
import type {Report} from '../load.ts';
import type {TimelineSection} from '../model.ts';
import {cssColor, isDark, isPrinting, onTheme, PAGE_WIDTH} from '../theme.ts';
import {type Layout, layOut} from './layout.ts';
import {RunMap} from './map.ts';
import {AXIS, Overlay} from './overlay.ts';
import {type Colors, colorsFor, Raster, type View} from './raster.ts';
import {parseSearch} from './search.ts';
import {NONE, Slices} from './slices.ts';
import {kindsLegend, twinLines} from './tables.ts';
import {alignRows} from './twins.ts';

const LEAST_TICKS = 20;  // in view

const PAGE_HEIGHT = 900;  // pixels of a page of paper

const KEYS = 'Click the timeline, then: wheel, + and \u2212 zoom; arrows and dragging move; 0 shows the whole run; ' +
  ', and . select the slice before and after; N and P go to the next and previous match. Ctrl with the wheel always zooms.';

export class Timeline {
  readonly element: HTMLElement;
  readonly slices: Slices;
  private layout: Layout = {rows: [], headings: [], height: 0};
  private view: View;
  private scroll = 0;
  private width = 0;
  private height = 0;
  private gutter = 70;
  private colors!: Colors;
  private selected = NONE;
  private hovered = NONE;
  private matches: Uint8Array | null = null;
  private found: number[] = [];
  private current = NONE;  // index into found
  private frame = 0;
  private mapDirty = true;
  private communication: boolean;
  private twins: number[] = [];  // the selected pass in other runs
  private aligned = false;
  private byRank = false;
  private readonly names: string[];

  private readonly base = h('canvas', {class: 'tl-base', 'aria-hidden': 'true'});
  private readonly top = h('canvas', {class: 'tl-overlay', 'aria-hidden': 'true'});
  private readonly map: RunMap;
  private readonly spacer = h('div', {class: 'tl-spacer'});
  private readonly stick = h('div', {class: 'tl-stick'}, this.base, this.top);
  private readonly box: HTMLElement;
  private readonly tip = h('div', {class: 'tl-tip', hidden: true});
  private readonly info = h('div', {class: 'tl-info', 'aria-live': 'polite'});
  private readonly count = h('span', {class: 'tl-count', role: 'status'});
  private readonly raster: Raster;
  private readonly overlay: Overlay;

  constructor(section: TimelineSection, report: Report) {
    this.slices = new Slices(section, report);
    this.names = report.header.runs.map(run => run.name);
    this.view = this.wholeRun();
    this.communication = this.slices.rows.filter(row => row.lane === 'compute').length <= 16;
    this.box = h('div', {class: 'tl-box', tabindex: 0, role: 'application', 'aria-label': 'Timeline of all ranks',
                         'aria-describedby': 'tl-keys'}, this.spacer);
    this.spacer.append(this.stick);
    this.raster = new Raster(this.base, this.slices);
    this.map = new RunMap(this.slices, part => this.center(part * this.slices.endTicks));
    this.overlay = new Overlay(this.top);
    this.element = h('div', {class: 'timeline'}, this.toolbar(), this.map.element,
                     h('div', {class: 'tl-frame'}, this.box, this.tip), this.info,
                     h('p', {class: 'note', id: 'tl-keys'}, KEYS), kindsLegend(this.slices));
    this.listen();
    this.arrange();
    onTheme(() => this.resize());
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.showInfo();
  }

  // ---- controls

  private toolbar(): HTMLElement {
    const button = (label: string, text: string, click: () => void) =>
      h('button', {type: 'button', 'aria-label': label, title: label, click}, text);
    const search = h('input', {type: 'search', placeholder: '2F5, stage 3 mb 5, queued', 'aria-label': 'Search the timeline',
                               class: 'tl-search'});
    search.addEventListener('input', () => this.search(search.value));
    search.addEventListener('keydown', event => {
      if (event.key === 'Enter') this.step(event.shiftKey ? -1 : 1);
    });
    const communication = h('input', {type: 'checkbox', checked: this.communication});
    communication.addEventListener('change', () => {
      this.communication = communication.checked;
      this.arrange();
      this.resize();
    });
    const tools = h('div', {class: 'controls'},
      button('Zoom in', '+', () => this.zoom(0.5)), button('Zoom out', '\u2212', () => this.zoom(2)),
      button('Fit: show the whole run', 'Fit', () => this.show(this.wholeRun())),
      search, button('Previous match', '\u2039', () => this.step(-1)), button('Next match', '\u203a', () => this.step(1)), this.count,
      this.slices.rows.some(row => row.lane !== 'compute')
        ? h('label', {class: 'choice'}, communication, ' communication') : null);
    const panels = new Set(this.slices.rows.map(row => row.panel));
    if (panels.size > 1) {
      const order = h('input', {type: 'checkbox'});
      order.addEventListener('change', () => {
        this.byRank = order.checked;
        this.arrange();
        this.resize();
      });
      tools.append(h('label', {class: 'choice'}, order, ' rank by rank'));
      const align = h('input', {type: 'checkbox'});
      align.addEventListener('change', () => {
        this.aligned = align.checked;
        this.align();
        this.mapDirty = true;
        this.request();
      });
      const differences = h('button', {type: 'button', 'aria-label': 'Differences: show passes that differ between the runs'}, 'Differences');
      differences.addEventListener('click', () => {
        search.value = search.value.trim() === 'differs' ? '' : 'differs';
        this.search(search.value);
      });
      tools.append(h('label', {class: 'choice'}, align, ' align at the selected pass'), differences);
    }
    return tools;
  }

  private listen(): void {
    const box = this.box;
    box.addEventListener('scroll', () => {
      this.scroll = box.scrollTop;
      this.request();
    }, {passive: true});
    box.addEventListener('wheel', event => {
      if (!event.ctrlKey && document.activeElement !== box) return;
      if (event.shiftKey) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.width);
      else this.zoom(Math.exp(Math.max(-300, Math.min(300, event.deltaY)) * 0.0025), this.fraction(event));
    }, {passive: false});
    let drag: {x: number; y: number; moved: boolean} | null = null;
    box.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      drag = {x: event.clientX, y: event.clientY, moved: false};
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener('pointermove', event => {
      if (drag) {
        if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return;
        drag.moved = true;
        this.pan((drag.x - event.clientX) / this.width);
        if (event.pointerType === 'mouse') box.scrollTop += drag.y - event.clientY;
        drag.x = event.clientX;
        drag.y = event.clientY;
        this.hover(NONE, event);
        return;
      }
      this.hover(this.sliceAt(event), event);
    });
    box.addEventListener('pointerup', event => {
      if (drag && !drag.moved) this.choose(this.sliceAt(event));
      drag = null;
    });
    box.addEventListener('pointercancel', () => (drag = null));
    box.addEventListener('pointerleave', event => this.hover(NONE, event));
    box.addEventListener('dblclick', () => { if (this.selected !== NONE) this.reveal(this.selected, 0.6); });
    box.addEventListener('keydown', event => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2),
      '0': () => this.show(this.wholeRun()), Home: () => this.show(this.wholeRun()),
      ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15),
      ArrowUp: () => (this.box.scrollTop -= 60), ArrowDown: () => (this.box.scrollTop += 60),
      '.': () => this.neighbor(1), ',': () => this.neighbor(-1),
      n: () => this.step(1), p: () => this.step(-1), Escape: () => this.choose(NONE),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // ---- state

  private wholeRun(): View {
    return {from: 0, to: Math.max(this.slices.endTicks, LEAST_TICKS)};
  }

  currentView(): View { return {...this.view}; }

  show(view: View): void {
    const whole = this.wholeRun().to;
    const span = Math.max(LEAST_TICKS, Math.min(view.to - view.from, whole));
    const center = (view.from + view.to) / 2;
    const from = Math.max(0, Math.min(center - span / 2, whole - span));
    this.view = {from, to: from + span};
    this.request();
  }

  private center(tick: number): void {
    const half = (this.view.to - this.view.from) / 2;
    this.show({from: tick - half, to: tick + half});
  }

  // `at`: the part of the view that stays where it is.
  zoom(factor: number, at = 0.5): void {
    const {from, to} = this.view;
    const fixed = from + at * (to - from);
    const span = Math.max(LEAST_TICKS, Math.min((to - from) * factor, this.wholeRun().to));
    this.show({from: fixed - at * span, to: fixed + (1 - at) * span});
  }

  // By a part of the view.
  pan(part: number): void {
    const shift = part * (this.view.to - this.view.from);
    this.show({from: this.view.from + shift, to: this.view.to + shift});
  }

  private arrange(): void {
    this.layout = layOut(this.slices, {communication: this.communication, byRank: this.byRank, names: this.names});
    this.mapDirty = true;
  }

  private setColors(): void {
    this.colors = colorsFor(isDark(), cssColor('--plot'));
  }

  private resize(): void {
    const prints = isPrinting();
    const whole = prints ? PAGE_WIDTH : this.box.clientWidth;
    if (whole === 0) return;
    this.gutter = this.byRank ? Math.min(150, Math.round(whole * 0.3)) : whole < 500 ? 52 : 70;
    this.width = whole - this.gutter;
    this.height = Math.min(this.layout.height, prints ? PAGE_HEIGHT : Math.max(160, Math.round(innerHeight * 0.7)));
    this.box.style.height = `${this.height + AXIS}px`;
    this.spacer.style.height = `${this.layout.height + AXIS}px`;
    this.stick.style.height = `${this.height + AXIS}px`;
    this.map.place(this.gutter, this.width);
    Object.assign(this.base.style, {left: `${this.gutter}px`, top: `${AXIS}px`, width: `${this.width}px`, height: `${this.height}px`});
    Object.assign(this.top.style, {width: `${whole}px`, height: `${this.height + AXIS}px`});
    const part = (length: number, all: number) => `${100 * length / all}%`;
    const all = this.height + AXIS;
    for (const [name, value] of Object.entries({
      shape: `${whole} / ${all}`, left: part(this.gutter, whole), top: part(AXIS, all), width: part(this.width, whole),
      height: part(this.height, all)})) {
      this.element.style.setProperty(`--print-${name}`, value);
    }
    this.mapDirty = true;
    this.setColors();
    this.draw();
  }

  private request(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  draw(): void {
    if (this.width === 0) return;
    const ratio = isPrinting() ? Math.max(devicePixelRatio, 2) : devicePixelRatio;
    this.raster.resize(Math.round(this.width * ratio), Math.round(this.height * ratio));
    this.raster.paint(this.layout.rows, this.view, this.scroll, ratio, this.colors, this.matches);
    this.overlay.paint({slices: this.slices, layout: this.layout, view: this.view, scroll: this.scroll, width: this.width,
                        height: this.height, gutter: this.gutter, selected: this.selected, hovered: this.hovered,
                        twins: this.twins, names: this.names}, ratio);
    if (this.mapDirty) this.map.paint(this.layout.rows, this.width, this.wholeRun(), ratio, this.colors, this.matches);
    this.mapDirty = false;
    this.map.show(this.view, this.wholeRun());
  }

  // ---- slices

  private fraction(event: MouseEvent): number {
    const bounds = this.base.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - bounds.left) / bounds.width));
  }

  private sliceAt(event: MouseEvent): number {
    const bounds = this.base.getBoundingClientRect();
    const y = event.clientY - bounds.top + this.scroll;
    if (event.clientX < bounds.left || event.clientY < bounds.top) return NONE;
    const placed = this.layout.rows.find(row => row.top <= y && y < row.top + row.height);
    if (!placed) return NONE;
    return this.slices.at(placed.row, this.view.from + placed.row.shift + this.fraction(event) * (this.view.to - this.view.from));
  }

  private lines(i: number): HTMLElement {
    return h('dl', {}, ...this.slices.describe(i).flatMap(([label, text]) => [h('dt', {}, label), h('dd', {}, text)]));
  }

  private title(i: number): HTMLElement {
    return h('strong', {}, this.slices.name(i));
  }

  private hover(i: number, event: PointerEvent): void {
    if (i !== this.hovered) {
      this.hovered = i;
      this.request();
      this.tip.hidden = i === NONE;
      if (i !== NONE) this.tip.replaceChildren(this.title(i), this.lines(i));
    }
    if (i === NONE) return;
    const bounds = this.element.querySelector('.tl-frame')!.getBoundingClientRect();
    const left = event.clientX - bounds.left + 14, top = event.clientY - bounds.top + 14;
    this.tip.style.left = `${Math.max(0, Math.min(left, bounds.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${top + this.tip.offsetHeight > bounds.height ? Math.max(0, top - this.tip.offsetHeight - 28) : top}px`;
  }

  private choose(i: number): void {
    this.selected = i;
    this.findTwins();
    if (i !== NONE) this.align();
    this.showInfo();
    this.request();
  }

  private findTwins(): void {
    this.twins = [];
    if (this.selected === NONE) return;
    const twins = this.slices.twins(), {panel} = this.slices.rowOf(this.selected);
    this.twins = twins.others(panel).map(other => twins.in(other, this.selected)).filter(twin => twin !== NONE);
  }

  private align(): void {
    if (alignRows(this.slices, this.aligned, this.selected, this.twins)) this.mapDirty = true;
  }

  private showInfo(): void {
    if (this.selected === NONE) {
      this.info.replaceChildren(h('p', {class: 'note'}, 'Select a slice to see its details and the passes that led to it.'));
    } else {
      this.info.replaceChildren(this.title(this.selected), this.lines(this.selected), ...twinLines(this.slices, this.selected, this.twins, this.names));
    }
  }

  // Shows a slice so that it takes `part` of the width, or at the present zoom.
  private reveal(i: number, part?: number): void {
    const {start, end} = this.slices;
    const span = part ? (end[i] - start[i]) / part : this.view.to - this.view.from;
    const row = this.slices.rowOf(i);
    const center = (start[i] + end[i]) / 2 - row.shift;
    if (part || start[i] - row.shift < this.view.from || end[i] - row.shift > this.view.to) {
      this.show({from: center - span / 2, to: center + span / 2});
    }
    const placed = this.layout.rows.find(one => one.row === row);
    if (placed && (placed.top < this.scroll || placed.top + placed.height > this.scroll + this.height)) {
      this.box.scrollTop = placed.top - this.height / 2;
    }
    this.choose(i);
  }

  private neighbor(direction: number): void {
    if (this.selected === NONE) {
      const first = this.layout.rows.find(({row}) => row.end > row.begin);
      if (first) this.reveal(Math.min(this.slices.firstAfter(first.row, this.view.from + first.row.shift), first.row.end - 1));
      return;
    }
    const row = this.slices.rowOf(this.selected);
    const next = this.selected + direction;
    if (next >= row.begin && next < row.end) this.reveal(next);
  }

  // ---- search

  search(text: string): void {
    this.matches = null;
    this.found = [];
    this.current = NONE;
    const test = parseSearch(text, this.slices);
    if (test) {
      const matches = new Uint8Array(this.slices.size);
      for (const {row} of this.layout.rows) {
        for (let i = row.begin; i < row.end; i++) {
          if (!test(i)) continue;
          matches[i] = 1;
          this.found.push(i);
        }
      }
      this.found.sort((a, b) => this.slices.start[a] - this.slices.start[b] || a - b);
      this.matches = matches;
    }
    this.count.textContent = text.trim() === '' ? '' : test === null ? 'no such word' :
      this.found.length === 1 ? '1 match' : `${this.found.length} matches`;
    this.mapDirty = true;
    this.request();
  }

  private step(direction: number): void {
    if (this.found.length === 0) return;
    this.current = this.current === NONE ? (direction > 0 ? 0 : this.found.length - 1)
      : (this.current + direction + this.found.length) % this.found.length;
    this.count.textContent = `${this.current + 1} of ${this.found.length}`;
    const i = this.found[this.current];
    const {start, end} = this.slices;
    const small = (end[i] - start[i]) / (this.view.to - this.view.from) < 0.02;
    this.reveal(i, small ? 0.08 : undefined);
  }
}
