// SPDX-License-Identifier: Apache-2.0
// Finds slices by words: "2F5", "F 5", "stage 2 mb 5", "rank 3 send",
// "differs".
import {isAction, isIdle, KINDS} from '../kinds.ts';
import type {Slices} from './slices.ts';

type Test = (i: number) => boolean;

const LETTERS: Record<string, number> = {F: 0, B: 1, I: 2, W: 3, O: 5, R: 6};

// Returns null for words that mean nothing.
export function parseSearch(text: string, slices: Slices): Test | null {
  const tests: Test[] = [];
  const words = text.trim().split(/[\s,]+/).filter(Boolean);
  const covers = (i: number, microbatch: number) =>
    slices.microbatch(i) <= microbatch && microbatch < slices.microbatch(i) + slices.span(i);
  for (let at = 0; at < words.length; at++) {
    const word = words[at].toLowerCase();
    const field = /^(stage|microbatch|mb|rank|version|v|update|u)[:=]?(\d+)?$/.exec(word);
    if (field) {
      const digits = field[2] ?? words[++at];
      if (digits === undefined || !/^\d+$/.test(digits)) return null;
      const value = Number(digits);
      if (field[1] === 'stage') tests.push(i => !isDrainOrIdle(slices, i) && slices.stage(i) === value);
      else if (field[1] === 'rank') tests.push(i => slices.rowOf(i).rank === value);
      else if (field[1][0] === 'v') tests.push(i => isAction(slices.kind[i]) && slices.version(i) === value);
      else if (field[1][0] === 'u') tests.push(i => [4, 21, 24].includes(slices.kind[i]) && slices.microbatch(i) === value);
      else tests.push(i => !isDrainOrIdle(slices, i) && slices.kind[i] !== 4 && covers(i, value));
      continue;
    }
    if (word === 'differs') {
      tests.push(i => slices.twins().differs(i));
      continue;
    }
    const action = /^(\d+)?([FBIWOR])(\d+)?$/i.exec(words[at]);
    if (action) {
      const kind = LETTERS[action[2].toUpperCase()];
      tests.push(i => slices.kind[i] === kind);
      if (action[1] !== undefined) tests.push(i => slices.stage(i) === Number(action[1]));
      if (action[3] !== undefined) tests.push(i => covers(i, Number(action[3])));
      continue;
    }
    if (/^\d+$/.test(word) && tests.length > 0) {
      tests.push(i => covers(i, Number(word)));
      continue;
    }
    const kinds = Object.keys(KINDS).map(Number).filter(kind =>
      KINDS[kind].name.includes(word) || (word === 'idle' && isIdle(kind)));
    if (kinds.length === 0) return null;
    tests.push(i => kinds.includes(slices.kind[i]));
  }
  return tests.length === 0 ? null : i => tests.every(test => test(i));
}

function isDrainOrIdle(slices: Slices, i: number): boolean {
  return isIdle(slices.kind[i]);
}
