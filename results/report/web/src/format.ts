// SPDX-License-Identifier: Apache-2.0
// Quantities as base/units.h prints them: three significant digits, or more if
// they are multiples of `step`, such as the ticks of an axis.

type Unit = [factor: number, name: string];

function format(value: number, units: Unit[], step = 0): string {
  const unit = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? units[units.length - 1];
  const scaled = value / unit[0];
  const whole = Number.isInteger(scaled) && unit[0] === 1;
  const text = whole ? scaled.toFixed(0) : threeDigits(scaled, step / unit[0]);
  return unit[1] ? `${text} ${unit[1]}` : text;
}

// Returns the number of decimals of multiples of `step`.
function decimalsOf(step: number): number {
  let decimals = 0;
  while (decimals < 12 && Math.abs(step - Number(step.toFixed(decimals))) > 1e-6 * step) decimals++;
  return decimals;
}

function threeDigits(value: number, step = 0): string {
  const magnitude = Math.abs(value);
  return value.toFixed(Math.max(magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2, decimalsOf(step)));
}

export function formatSeconds(seconds: number, step = 0): string {
  if (seconds === 0) return '0 s';
  return format(seconds, [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']], step);
}

// "12.5 min", "3.09 h" or "41.2 days".
export function formatDuration(seconds: number): string {
  if (seconds < 300) return formatSeconds(seconds);
  if (seconds < 3600) return `${threeDigits(seconds / 60)} min`;
  if (seconds < 2 * 86400) return `${threeDigits(seconds / 3600)} h`;
  return `${threeDigits(seconds / 86400)} days`;
}

export function formatJoules(joules: number, step = 0): string {
  return format(joules, [[1e9, 'GJ'], [1e6, 'MJ'], [1e3, 'kJ'], [1, 'J']], step);
}

export function formatBytes(bytes: number, step = 0): string {
  return format(bytes, [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']], step);
}

export function formatPercent(ratio: number, step = 0): string {
  return `${(100 * ratio).toFixed(Math.max(1, decimalsOf(100 * step)))} %`;
}

export function formatCount(count: number, step = 0): string {
  return format(count, [[1e15, 'P'], [1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k'], [1, '']], step);
}

// Four significant digits, with an exponent if there are many zeros.
export function formatNumber(value: number): string {
  const magnitude = Math.abs(value);
  const digits = Number(value.toPrecision(4));
  return magnitude !== 0 && (magnitude >= 1e6 || magnitude < 1e-3) ? digits.toExponential().replace('e+', 'e') : String(digits);
}

// "+12 ms", "-3.40 s"
export function signedSeconds(seconds: number): string {
  return (seconds > 0 ? '+' : seconds < 0 ? '\u2212' : '') + formatSeconds(Math.abs(seconds));
}

// With all digits of times that are multiples of `step`, in the unit of `largest`.
export function formatTime(seconds: number, step: number, largest: number): string {
  const units: Unit[] = [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']];
  const unit = units.find(([size]) => largest >= size) ?? units[units.length - 1];
  return `${(seconds / unit[0]).toFixed(decimalsOf(step / unit[0]))} ${unit[1]}`;
}

// The smallest of 1, 2 and 5 times a power of ten that is at least `least`.
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least * 0.9999) return factor * power;
  return 10 * power;
}
