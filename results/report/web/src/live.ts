// SPDX-License-Identifier: Apache-2.0
// The controls of "weir live". Each change is estimated at once; when they rest,
// the run is simulated in full and its report is shown.
import {chart, csvButton, csvOfTable, h, name, table, type TableCell} from './dom.ts';
import {formatBytes, formatCount, formatPercent, formatSeconds} from './format.ts';
import {parseReport, type Report} from './load.ts';
import type {LiveEstimate, LiveSection, LiveSettings} from './model.ts';

const REST_MS = 600, MOST_TRIED = 200;

const range = (from: number, to: number) => Array.from({length: to - from + 1}, (_, i) => from + i);

interface Slider {
  key: 'pipeline' | 'microbatches' | 'chunks' | 'bandwidth' | 'memory_limit_bytes' | 'slowest_gpu';
  label: string;
  values: number[];
  text: (value: number) => string;
}

function slidersOf(section: LiveSection): Slider[] {
  const {settings, limits, memory_capacity_bytes: capacity} = section;
  const upTo = (usual: number, own: number, most: number) => range(1, Math.min(Math.max(usual, own), most));
  const sliders: Slider[] = [
    {key: 'pipeline', label: 'Pipeline ranks', values: upTo(64, settings.pipeline, limits.pipeline), text: String},
    {key: 'microbatches', label: 'Microbatches', values: upTo(256, settings.microbatches, limits.microbatches), text: String},
    {key: 'chunks', label: 'Chunks per rank', values: upTo(8, settings.chunks, limits.chunks), text: String},
    {key: 'bandwidth', label: section.given_costs ? 'Speed of hops' : 'Bandwidth of links',
     values: range(-12, 12).map(i => 2 ** (i / 4)).filter(value => value <= limits.bandwidth), text: value => `${Number(value.toPrecision(3))} x`},
  ];
  if (capacity !== null) {
    sliders.push({key: 'memory_limit_bytes', label: 'Memory limit', values: [...range(1, 19).map(i => i / 20 * capacity), 0],
                  text: value => (value === 0 ? `all ${formatBytes(capacity)}` : formatBytes(value))});
  }
  if (!section.given_costs) {
    sliders.push({key: 'slowest_gpu', label: 'Speed of GPU 0', values: range(5, 20).map(i => i / 20).filter(value => value >= limits.slowest_gpu),
                  text: value => formatPercent(value)});
  }
  return sliders;
}

async function post(path: string, settings: LiveSettings): Promise<Response> {
  const token = new URLSearchParams(location.search).get('token') ?? '';
  const response = await fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Weir-Token': token},
                                      body: JSON.stringify(settings)});
  if (response.ok) return response;
  const text = await response.text();
  let message = text || `status ${response.status}`;
  try {
    message = (JSON.parse(text) as {error: string}).error;
  } catch {
    // Not JSON: shown as it is.
  }
  throw new Error(message);
}

function settingsText({schedule, pipeline, microbatches, chunks}: LiveSettings): string {
  const count = (number: number, one: string, several: string) => `${number} ${number === 1 ? one : several}`;
  const parts = [schedule, count(pipeline, 'rank', 'ranks'), count(microbatches, 'microbatch', 'microbatches')];
  if (chunks > 1) parts.push(`${chunks} chunks per rank`);
  return parts.join(', ');
}

export class Live {
  readonly element: HTMLElement;
  private settings: LiveSettings;
  private first: LiveEstimate | null = null;
  private tried: LiveEstimate[] = [];
  private busy = false;
  private waiting = false;
  private timer = 0;
  private version = 0;
  private shown: LiveSettings | null = null;  // those of the report
  private readonly cards = h('dl', {class: 'cards'});
  private readonly status = h('p', {class: 'live-status', role: 'status'});
  private readonly table = h('div');
  private readonly outdated = h('p', {class: 'warnings', role: 'status', hidden: true});
  private cells: TableCell[][] = [];
  private heads: {label: string; left?: boolean}[] = [];

  constructor(private section: LiveSection, private show: (report: Report, settings: string) => void) {
    this.settings = {...section.settings};
    const schedule = h('select', {id: 'live-schedule'}, ...section.schedules.map(text =>
      h('option', {value: text, selected: text === this.settings.schedule}, text)));
    schedule.addEventListener('change', () => {
      this.settings.schedule = schedule.value;
      this.change();
    });
    const controls = h('div', {class: 'live-controls'},
      h('label', {class: 'live-control', for: 'live-schedule'}, h('span', {}, 'Schedule'), schedule),
      ...slidersOf(section).map(slider => this.slider(slider)));
    this.element = h('section', {id: 'live'}, h('h2', {}, 'Controls'), controls, this.status, this.cards,
      chart('Estimates', 'Every setting tried on this page, the last one first.',
            csvButton('the estimates', () => csvOfTable(this.heads, this.cells)), this.table),
      this.outdated);
  }

  private slider({key, label, values, text}: Slider): HTMLElement {
    const nearest = (value: number) => values.reduce((best, one, i) => (Math.abs(one - value) < Math.abs(values[best] - value) ? i : best), 0);
    const begin = key === 'memory_limit_bytes' ? values.length - 1 : nearest(this.settings[key]);
    const output = h('output', {for: `live-${key}`}, text(values[begin]));
    const input = h('input', {type: 'range', id: `live-${key}`, min: 0, max: values.length - 1, step: 1, value: begin,
                              'aria-valuetext': text(values[begin])});
    input.addEventListener('input', () => {
      const value = values[Number(input.value)];
      this.settings[key] = value;
      output.textContent = text(value);
      input.setAttribute('aria-valuetext', text(value));
      this.change();
    });
    return h('div', {class: 'live-control'}, h('label', {for: `live-${key}`}, label), output, input);
  }

  start(): void {
    void this.estimate();
    void this.simulate();
  }

  private change(): void {
    this.version++;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.simulate(), REST_MS);
    if (this.busy) this.waiting = true;
    else void this.estimate();
  }

  // Estimates the last settings; those in between are skipped while an estimate
  // is on its way.
  private async estimate(): Promise<void> {
    this.busy = true;
    do {
      this.waiting = false;
      const begin = performance.now();
      try {
        const estimate = await (await post('/estimate', this.settings)).json() as LiveEstimate;
        this.first ??= estimate;
        this.tried.unshift(estimate);
        this.tried.length = Math.min(this.tried.length, MOST_TRIED);
        this.showEstimate(estimate, performance.now() - begin);
      } catch (error) {
        this.cards.replaceChildren();
        this.say(error);
      }
    } while (this.waiting);
    this.busy = false;
  }

  private async simulate(): Promise<void> {
    const version = this.version, settings = {...this.settings};
    this.element.dataset.simulating = '1';
    try {
      const report = parseReport(await (await post('/report', this.settings)).arrayBuffer());
      if (version === this.version) {
        this.shown = settings;
        this.outdated.hidden = true;
        this.show(report, settingsText(settings));
      }
    } catch (error) {
      if (version === this.version) this.say(error);
    }
    if (version === this.version) delete this.element.dataset.simulating;
  }

  private say(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.status.replaceChildren(h('span', {class: 'mark'}, 'Cannot run: '), name(message));
    if (this.shown === null) return;
    this.outdated.textContent = `The report below is that of the last settings that could run: ${settingsText(this.shown)}.`;
    this.outdated.hidden = false;
  }

  private showEstimate(estimate: LiveEstimate, milliseconds: number): void {
    const {result, fits, warnings} = estimate, first = this.first!.result;
    const card = (label: string, text: string, json: string, value: number, note = '') =>
      h('div', {class: 'card'}, h('dt', {}, label), h('dd', {}, h('span', {class: 'value', 'data-live': json, 'data-value': value}, text),
                                                       note ? h('span', {class: 'interval'}, note) : null));
    const against = (value: number, begin: number | undefined) => {
      if (begin === undefined || begin === 0 || value === begin) return '';
      return `${value > begin ? '+' : '\u2212'}${formatPercent(Math.abs(value / begin - 1))} against the first`;
    };
    const cards = [card('Step time', formatSeconds(result.batch_seconds), 'batch_seconds', result.batch_seconds, against(result.batch_seconds, first.batch_seconds))];
    for (const [label, key] of [['Samples per second', 'samples_per_second'], ['Tokens per second', 'tokens_per_second']] as const) {
      const value = result[key];
      if (value !== undefined) cards.push(card(label, formatCount(value), key, value, against(value, first[key])));
    }
    if (result.peak_memory_bytes > 0 && !this.section.given_costs) {
      cards.push(card('Peak memory', formatBytes(result.peak_memory_bytes), 'peak_memory_bytes', result.peak_memory_bytes, fits ? 'fits' : 'does not fit'));
    }
    cards.push(card('GPUs', String(result.num_gpus), 'num_gpus', result.num_gpus));
    this.cards.replaceChildren(...cards);
    this.element.dataset.milliseconds = milliseconds.toFixed(1);
    this.status.replaceChildren(`Estimated in ${Math.max(1, Math.round(milliseconds))} ms (${result.method}).`,
      ...warnings.slice(0, 3).flatMap(text => [h('br'), name(text)]));
    this.showTable();
  }

  private showTable(): void {
    this.heads = [{label: 'Schedule', left: true}, {label: 'Ranks'}, {label: 'Microbatches'}, {label: 'Chunks'}, {label: 'Bandwidth'},
                  {label: 'Speed of GPU 0'}, {label: 'Step time'}, {label: 'Samples/s'}, {label: 'Peak memory'}, {label: 'Fits', left: true}];
    const number = (value: number, text: string) => ({text, value});
    const given = this.section.given_costs;  // without memory and GPUs
    this.cells = this.tried.map(({settings, result, fits}) => [settings.schedule, number(settings.pipeline, String(settings.pipeline)),
      number(settings.microbatches, String(settings.microbatches)), number(settings.chunks, String(settings.chunks)),
      number(settings.bandwidth, `${Number(settings.bandwidth.toPrecision(3))} x`), given ? '-' : number(settings.slowest_gpu, formatPercent(settings.slowest_gpu)),
      number(result.batch_seconds, formatSeconds(result.batch_seconds)),
      result.samples_per_second === undefined ? '-' : number(result.samples_per_second, formatCount(result.samples_per_second)),
      given ? '-' : number(result.peak_memory_bytes, formatBytes(result.peak_memory_bytes)), given ? '-' : fits ? 'yes' : 'no']);
    const box = table('Estimates, the last one first', this.heads, this.cells);
    box.classList.add('low');
    this.table.replaceChildren(box);
  }
}
