// SPDX-License-Identifier: Apache-2.0
// Writes ../template.html: page, style and program in one file.
//
//   node build.mjs                  writes it
//   node build.mjs --check [FILE]   exits with 1 if FILE is not what it writes
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

import * as esbuild from 'esbuild';

const folder = dirname(fileURLToPath(import.meta.url));
const check = process.argv[2] === '--check';
const target = (check && process.argv[3]) || join(folder, '..', 'template.html');

async function bundle(entry) {
  const result = await esbuild.build({
    entryPoints: [join(folder, 'src', entry)],
    bundle: true,
    write: false,
    minify: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
  });
  return result.outputFiles[0].text.trim();
}

function replaceOnce(text, marker, value) {
  if (text.split(marker).length !== 2) {
    throw new Error(`index.html: contains ${marker} not exactly once`);
  }
  return text.split(marker).join(value);
}

const style = await bundle('style.css');
const program = await bundle('main.ts');
if (/<\/script/i.test(program) || /<\/style/i.test(style)) {
  throw new Error('the bundle would end its own element');
}
let page = readFileSync(join(folder, 'src', 'index.html'), 'utf8');
page = replaceOnce(page, '/*STYLE*/', style);
page = replaceOnce(page, '/*PROGRAM*/', program);

if (check) {
  if (readFileSync(target, 'utf8') !== page) {
    console.error(`${target}: is not what "npm run build" in results/report/web writes`);
    process.exit(1);
  }
} else {
  writeFileSync(target, page);
  console.error(`wrote ${target}: ${Buffer.byteLength(page)} bytes`);
}
