// SPDX-License-Identifier: Apache-2.0
// The section of the timeline.
import {chart, csvButton, details, h, name} from '../dom.ts';
import {formatPercent, formatSeconds} from '../format.ts';
import type {Report} from '../load.ts';
import type {TimelineSection} from '../model.ts';
import {csvRows, summary} from './tables.ts';
import {Timeline} from './timeline.ts';

export function timelineView(section: TimelineSection, report: Report): HTMLElement {
  const timeline = new Timeline(section, report);
  const names = report.header.runs.map(run => run.name);
  (window as any).weirTimeline = timeline;
  const idle = section.panels.every(panel => panel.idle_known);
  const box = details('Table: time of each kind of slice');
  box.addEventListener('toggle', () => { if (box.open && box.children.length === 1) box.append(summary(timeline.slices, names)); });
  const left = section.panels.filter(panel => panel.from_seconds > 0).map(panel =>
    h('p', {class: 'note'}, name(report.header.runs[panel.run].name),
      `: shown from ${formatSeconds(panel.from_seconds)} on, the last ${formatPercent(1 - panel.from_seconds / (section.end_ticks * section.tick_seconds))} of the time axis.`));
  return h('section', {id: 'timeline'}, h('h2', {}, 'Timeline'),
           chart('All ranks', idle ? 'Gaps are colored by the cause of the wait.' : '',
                 csvButton('the timeline', () => csvRows(timeline.slices, names)), ...left, timeline.element, box));
}
