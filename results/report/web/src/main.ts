// SPDX-License-Identifier: Apache-2.0
// Builds the page from its data.
import './benchmark.ts';

import {breakdownView} from './breakdown.ts';
import {commandLine, h, name} from './dom.ts';
import {energyView} from './energy.ts';
import {explanationView} from './explanation.ts';
import {figuresView} from './figures.ts';
import {goodputView} from './goodput.ts';
import {idleView} from './idle.ts';
import {linksView} from './links.ts';
import {Live} from './live.ts';
import {loadReport, type Report} from './load.ts';
import {memoryView} from './memory.ts';
import type {DocumentSection, LiveSection, Section} from './model.ts';
import {planView} from './plan.ts';
import {rooflineView} from './roofline.ts';
import {sharedLinksView} from './shared_links.ts';
import {slackView} from './slack.ts';
import {stragglersView} from './stragglers.ts';
import {studyView} from './study.ts';
import {sweepView} from './sweep.ts';
import {plannersView, synthesisView} from './synthesis.ts';
import {configurationView, ranksView} from './tables.ts';
import {keepThemeListeners, startTheme, themeButton, themeListeners} from './theme.ts';
import {timelineView} from './timeline/view.ts';
import {executionView, validationView} from './validation.ts';

function viewOf(section: Section, report: Report): HTMLElement | null {
  switch (section.type) {
    case 'figures': return figuresView(section, report);
    case 'timeline': return timelineView(section, report);
    case 'breakdown': return breakdownView(section, report);
    case 'idle': return idleView(section, report);
    case 'slack': return slackView(section, report);
    case 'links': return linksView(section, report);
    case 'shared_links': return sharedLinksView(section, report);
    case 'roofline': return rooflineView(section, report);
    case 'memory': return memoryView(section, report);
    case 'ranks': return ranksView(section, report);
    case 'configuration': return configurationView(section, report);
    case 'plan': return planView(section);
    case 'sweep': return sweepView(section);
    case 'validation': return validationView(section);
    case 'execution': return executionView(section);
    case 'synthesis': return synthesisView(section);
    case 'explanation': return explanationView(section);
    case 'study': return studyView(section);
    case 'planners': return plannersView(section);
    case 'stragglers': return stragglersView(section);
    case 'goodput': return goodputView(section);
    case 'energy': return energyView(section);
    default: return null;  // a section of a newer version
  }
}

// What the page is about, unless it is about runs.
function documentOf(report: Report): DocumentSection | null {
  for (const section of report.header.sections) if ('command' in section) return section;
  return null;
}

// Adds the views of all sections; returns links to them.
function addViews(report: Report, to: HTMLElement): HTMLElement[] {
  const links: HTMLElement[] = [];
  for (const section of report.header.sections) {
    const view = viewOf(section, report);
    if (!view) continue;
    to.append(view);
    links.push(h('a', {href: `#${view.id}`}, view.querySelector('h2')!.textContent!));
  }
  return links;
}

// The page of "weir live": controls, and the report of the last simulation.
function startLive(section: LiveSection, report: Report): void {
  const results = h('div'), nav = h('nav', {'aria-label': 'Sections'});
  const theme = themeButton();
  const title = section.name || 'weir live';
  document.title = title;
  const live = new Live(section, (simulated, settings) => {
    keepThemeListeners(kept);
    results.replaceChildren(h('p', {class: 'verdict'}, 'Report of ', name(settings)));
    if (simulated.header.notes.length > 0) {
      results.append(h('ul', {class: 'notes'}, ...simulated.header.notes.map(text => h('li', {}, name(text)))));
    }
    nav.replaceChildren(h('a', {href: '#live'}, 'Controls'), ...addViews(simulated, results));
  });
  const kept = themeListeners();
  document.getElementById('app')!.replaceChildren(
    h('header', {class: 'bar'}, nav, theme), h('main', {}, h('h1', {}, name(title)), live.element, results),
    h('footer', {}, `Served by weir ${report.header.weir_version} on this machine.`));
  live.start();
}

// A long heading scrolls (style.css), also with the keyboard.
function makeHeading(...children: Parameters<typeof h>[2][]): HTMLElement {
  const element = h('h1', {}, ...children);
  if ((element.textContent ?? '').length >= 100) element.tabIndex = 0;
  return element;
}

function heading(report: Report): HTMLElement {
  const {runs, title} = report.header;
  const document_ = documentOf(report);
  if (document_) {
    document.title = title;
    return makeHeading(name(title), ...(document_.command ? [commandLine(`weir ${document_.command}`)] : []));
  }
  const text = runs.map(run => run.name).join(', ');
  document.title = `${title ? `${title}: ` : ''}${text}`.slice(0, 200);
  return makeHeading(title ? name(title) : null, title ? ': ' : null, name(text));
}

async function start(): Promise<void> {
  startTheme();
  const report = await loadReport();
  const live = report.header.sections.find(section => section.type === 'live');
  if (live?.type === 'live') {
    startLive(live, report);
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
    return;
  }
  const main = h('main', {}, heading(report));
  if (report.header.notes.length > 0) {
    main.append(h('ul', {class: 'notes'}, ...report.header.notes.map(text => h('li', {}, name(text)))));
  }
  // Those of runs are with their figures.
  const warnings = report.header.runs.length > 0 ? [] : documentOf(report)?.warnings ?? [];
  if (warnings.length > 0) {
    main.append(h('div', {class: 'warnings'}, h('h2', {}, 'Warnings'), h('ul', {}, ...warnings.map(text => h('li', {}, name(text))))));
  }
  const links = addViews(report, main);
  document.getElementById('app')!.replaceChildren(
    h('header', {class: 'bar'}, h('nav', {'aria-label': 'Sections'}, ...links), themeButton()),
    main,
    h('footer', {}, `Written by weir${report.header.weir_version ? ` ${report.header.weir_version}` : ''}. This file is complete: it loads nothing else.`));
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error: unknown) => {
  document.getElementById('app')!.replaceChildren(
    h('main', {}, h('h1', {}, 'This report cannot be shown'),
      h('p', {}, error instanceof Error ? error.message : String(error)),
      h('p', {}, 'It needs a browser of 2023 or later.')));
  document.documentElement.dataset.failed = '1';
});
