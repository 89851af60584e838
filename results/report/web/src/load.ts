// SPDX-License-Identifier: Apache-2.0
// Reads the data of the page.
import type {Header} from './model.ts';

export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

export interface Report {
  header: Header;
  column(index: number): Column;
}

const VERSION = 1;

function decodeBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as {fromBase64?: (text: string) => Uint8Array}).fromBase64;
  if (native) return native(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function gunzip(bytes: Uint8Array): Promise<ArrayBuffer> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

export async function loadReport(): Promise<Report> {
  const element = document.getElementById('report-data')!;
  const buffer = await gunzip(decodeBase64(element.textContent!.trim()));
  element.textContent = '';
  return parseReport(buffer);
}

export function parseReport(buffer: ArrayBuffer): Report {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Header;
  if (header.version !== VERSION) {
    throw new Error(`the data has version ${header.version}, expected ${VERSION}`);
  }
  const base = Math.ceil((4 + length) / 8) * 8;
  const types = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array};
  return {
    header,
    column(index: number): Column {
      const {type, length, offset} = header.columns[index];
      return new types[type](buffer, base + offset, length);
    },
  };
}
