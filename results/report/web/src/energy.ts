// SPDX-License-Identifier: Apache-2.0
// Plans of clocks: the front of time and energy, and the clocks of stages.
import {bars} from './bars.ts';
import {cards, chart, csvButton, csvOfTable, details, h, select, table, type TableCell} from './dom.ts';
import {formatJoules, formatPercent, formatSeconds} from './format.ts';
import {passText} from './kinds.ts';
import type {EnergySection} from './model.ts';
import {Scatter, seriesLegend} from './scatter.ts';

type Result = EnergySection['result'];

const seconds = (value: number) => ({text: formatSeconds(value), value});
const joules = (value: number) => ({text: formatJoules(value), value});
const part = (value: number) => ({text: `${(100 * value).toFixed(2)} %`, value});

function plansOf({baseline, fastest, least_energy, power_cap, frontier}: Result) {
  const plans: {name: string; seconds: number; joules: number; deadline_seconds?: number; lower_bound_joules?: number}[] = [
    {name: 'highest clocks', ...baseline}, {...fastest, name: 'fastest'}, {...least_energy, name: 'least energy'}];
  if (power_cap?.plan && typeof power_cap.plan.seconds === 'number' && typeof power_cap.plan.joules === 'number') {
    plans.push({...power_cap.plan, name: 'power cap'});
  }
  plans.push(...frontier.map(point => ({...point, name: 'frontier'})));
  return plans;
}

function frontChart(result: Result): HTMLElement {
  const plans = plansOf(result), {baseline} = result;
  const series = [...new Set(plans.map(plan => plan.name))];
  const bounds = plans.filter(plan => plan.lower_bound_joules !== undefined && plan.deadline_seconds !== undefined)
    .map((plan): [number, number] => [plan.deadline_seconds!, plan.lower_bound_joules!]).sort((a, b) => a[0] - b[0]);
  const scatter = new Scatter();
  scatter.show({
    label: 'Energy over time of an iteration', series, x: {label: 'time of an iteration', format: formatSeconds}, y: {label: 'energy of an iteration', format: formatJoules},
    points: plans.map(plan => ({x: plan.seconds, y: plan.joules, series: series.indexOf(plan.name), large: plan.name !== 'frontier',
                                text: `${plan.name}: ${formatSeconds(plan.seconds)}, ${formatJoules(plan.joules)}`})),
    lines: [{points: bounds, dash: true}],
  });
  const columns = [{label: 'Plan', left: true}, {label: 'Deadline'}, {label: 'Time'}, {label: 'Energy'}, {label: 'Lower bound'}, {label: 'Saved'}, {label: 'Slower'}];
  const cells: TableCell[][] = plans.map(plan => [plan.name, plan.deadline_seconds === undefined ? '-' : seconds(plan.deadline_seconds), seconds(plan.seconds),
    joules(plan.joules), plan.lower_bound_joules === undefined ? '-' : joules(plan.lower_bound_joules), part(1 - plan.joules / baseline.joules),
    part(plan.seconds / baseline.seconds - 1)]);
  return chart('Time and energy', 'Each point is a plan with one clock per pass. Dashed: no plan of that time takes less energy.',
               csvButton('the plans of clocks', () => csvOfTable(columns, cells)), scatter.element, seriesLegend(series),
               table('Plans of clocks', columns, cells));
}

function clocksChart({clocks}: Result): HTMLElement | null {
  if (clocks.length === 0) return null;
  const plans = [...new Set(clocks.map(one => one.plan))], operations = [...new Set(clocks.map(one => one.operation))];
  const stages = [...new Set(clocks.map(one => one.stage))].sort((a, b) => a - b);
  const scatter = new Scatter();
  const megahertz = (value: number) => `${Number(value.toPrecision(4))} MHz`;
  const show = (chosen: number) => {
    const shown = clocks.filter(one => one.plan === plans[chosen]);
    scatter.show({
      label: `Clocks of the passes of each stage in the plan ${plans[chosen]}`, series: operations,
      x: {label: 'stage', format: String, names: stages.map(String)}, y: {label: 'clock', format: megahertz},
      points: shown.map(one => ({
        x: stages.indexOf(one.stage) + 0.16 * (operations.indexOf(one.operation) - (operations.length - 1) / 2), y: one.mean_mhz,
        low: one.lowest_mhz, high: one.highest_mhz, series: operations.indexOf(one.operation),
        text: `stage ${one.stage}, ${one.operation}: mean ${megahertz(one.mean_mhz)}, ${megahertz(one.lowest_mhz)} to ${megahertz(one.highest_mhz)}`})),
    });
  };
  show(0);
  const columns = [{label: 'Plan', left: true}, {label: 'Stage'}, {label: 'Passes', left: true}, {label: 'Number'}, {label: 'Lowest clock'}, {label: 'Mean clock'}, {label: 'Highest clock'}];
  const clock = (value: number) => ({text: megahertz(value), value});
  const cells: TableCell[][] = clocks.map(one => [one.plan, {text: String(one.stage), value: one.stage}, one.operation,
    {text: String(one.num_passes), value: one.num_passes}, clock(one.lowest_mhz), clock(one.mean_mhz), clock(one.highest_mhz)]);
  return chart('Clocks by stage', 'Points are means over the passes of a stage, lines go from the lowest to the highest clock.',
               csvButton('the clocks of stages', () => csvOfTable(columns, cells)),
               h('div', {class: 'controls'}, select('Plan', plans, 0, show)), scatter.element, seriesLegend(operations.map(passText)),
               details('Table', table('Clocks of the passes of each stage', columns, cells)));
}

function stragglersChart({stragglers}: Result): HTMLElement | null {
  if (stragglers.length === 0) return null;
  const saved = (one: Result['stragglers'][0]) => 1 - one.joules / one.baseline_joules;
  const columns = [{label: 'Straggler', left: true}, {label: 'Iteration'}, {label: 'Plan'}, {label: 'Highest clocks'}, {label: 'Energy'}, {label: 'Saved'}];
  const cells: TableCell[][] = stragglers.map(one => [{text: `${one.factor} x`, value: one.factor}, seconds(one.iteration_seconds), seconds(one.plan_seconds),
    joules(one.baseline_joules), joules(one.joules), part(saved(one))]);
  return chart('With a straggler', 'Energy that is saved if another replica takes longer than the highest clocks of this one.',
               csvButton('the energy with stragglers', () => csvOfTable(columns, cells)),
               bars('Saved energy by the time of a straggler', stragglers.map(one => ({
                 label: `${one.factor} x`, text: formatPercent(saved(one)),
                 parts: [{label: `${one.factor} x`, color: '#009E73', value: Math.max(saved(one), 0), text: formatPercent(saved(one))}]}))),
               table('Energy with a straggler', columns, cells));
}

export function energyView(section: EnergySection): HTMLElement {
  const {result} = section, {baseline, fastest, least_energy, power_cap} = result;
  const against = (plan: {seconds: number; joules: number}) => {
    const slower = plan.seconds / baseline.seconds - 1;
    return `${formatPercent(1 - plan.joules / baseline.joules)} less energy, ${formatPercent(Math.abs(slower))} ${slower < 0 ? 'faster' : 'slower'}`;
  };
  const root = h('section', {id: 'energy'}, h('h2', {}, 'Energy'),
    cards([['Highest clocks', formatJoules(baseline.joules), formatSeconds(baseline.seconds)],
           ['Fastest plan', formatJoules(fastest.joules), `${formatSeconds(fastest.seconds)}: ${against(fastest)}`],
           ['Least energy', formatJoules(least_energy.joules), `${formatSeconds(least_energy.seconds)}: ${against(least_energy)}`]]));
  if (power_cap) {
    root.append(h('p', {class: 'verdict'}, power_cap.plan ? `Within ${power_cap.watts} W per stage, no plan is faster than ${formatSeconds(power_cap.lower_bound_seconds)}.`
      : `No plan takes at most ${power_cap.watts} W per stage.`));
  }
  if (result.infeasible_deadlines.length > 0) {
    root.append(h('p', {class: 'note'}, `${result.infeasible_deadlines.length} deadlines are shorter than the fastest plan and left out.`));
  }
  for (const one of [frontChart(result), clocksChart(result), stragglersChart(result)]) if (one) root.append(one);
  return root;
}
