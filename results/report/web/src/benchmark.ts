// SPDX-License-Identifier: Apache-2.0
// A scripted pan, for tools/report_bench.
import type {Timeline} from './timeline/timeline.ts';

interface Measured {
  frame_ms: number[];  // between frames
  paint_ms: number[];  // of these, in our own code
}

// Pans over the run with a quarter of it in view, or zooms.
async function animate(frames: number, kind: 'pan' | 'zoom'): Promise<Measured> {
  const timeline = (window as any).weirTimeline as Timeline;
  const end = timeline.slices.endTicks;
  const measured: Measured = {frame_ms: [], paint_ms: []};
  let last = 0;
  for (let k = 0; k < frames; k++) {
    const now = await new Promise<number>(requestAnimationFrame);
    if (last > 0) measured.frame_ms.push(now - last);
    last = now;
    const part = k / frames;
    const begin = performance.now();
    if (kind === 'pan') timeline.show({from: 0.75 * end * part, to: end * (0.75 * part + 0.25)});
    else timeline.show({from: 0.43 * end * part ** 0.1, to: end - 0.57 * end * part ** 0.1});
    timeline.draw();
    measured.paint_ms.push(performance.now() - begin);
  }
  return measured;
}

(window as any).weirAnimate = animate;
