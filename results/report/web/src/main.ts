// SPDX-License-Identifier: Apache-2.0
// Builds the page from its data.
import './benchmark.ts';

import {breakdownView} from './breakdown.ts';
import {h, name} from './dom.ts';
import {figuresView} from './figures.ts';
import {idleView} from './idle.ts';
import {loadReport, type Report} from './load.ts';
import {memoryView} from './memory.ts';
import type {Section} from './model.ts';
import {configurationView, ranksView} from './tables.ts';
import {startTheme, themeButton} from './theme.ts';
import {timelineView} from './timeline/timeline.ts';

function viewOf(section: Section, report: Report): HTMLElement | null {
  switch (section.type) {
    case 'figures': return figuresView(section, report);
    case 'timeline': return timelineView(section, report);
    case 'breakdown': return breakdownView(section, report);
    case 'idle': return idleView(section, report);
    case 'memory': return memoryView(section, report);
    case 'ranks': return ranksView(section, report);
    case 'configuration': return configurationView(section, report);
    default: return null;  // a section of a newer version
  }
}

function heading(report: Report): HTMLElement {
  const {runs, title} = report.header;
  const text = runs.map(run => run.name).join(', ');
  document.title = `${title ? `${title}: ` : ''}${text}`.slice(0, 200);
  return h('h1', {}, title ? name(title) : null, title ? ': ' : null, name(text));
}

async function start(): Promise<void> {
  startTheme();
  const report = await loadReport();
  const main = h('main', {}, heading(report));
  if (report.header.notes.length > 0) {
    main.append(h('ul', {class: 'notes'}, ...report.header.notes.map(text => h('li', {}, name(text)))));
  }
  const links: HTMLElement[] = [];
  for (const section of report.header.sections) {
    const view = viewOf(section, report);
    if (!view) continue;
    main.append(view);
    links.push(h('a', {href: `#${view.id}`}, view.querySelector('h2')!.textContent!));
  }
  document.getElementById('app')!.replaceChildren(
    h('header', {class: 'bar'}, h('nav', {'aria-label': 'Sections'}, ...links), themeButton()),
    main,
    h('footer', {}, `Written by weir ${report.header.weir_version}. This file is complete: it loads nothing else.`));
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error: unknown) => {
  document.getElementById('app')!.replaceChildren(
    h('main', {}, h('h1', {}, 'This report cannot be shown'),
      h('p', {}, error instanceof Error ? error.message : String(error)),
      h('p', {}, 'It needs a browser of 2023 or later.')));
  document.documentElement.dataset.failed = '1';
});
