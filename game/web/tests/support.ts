// A frame as the Worker would write it, from records given as numbers by field.

import { Frame, HEADER, LAYOUT_VERSION, SECTIONS, type SectionName } from "../src/frame.ts";

export type Records = Partial<Record<SectionName, Record<number, number>[]>>;

export function makeFrame(records: Records, header: Record<number, number> = {}): Frame {
  const floats = new Float32Array(2048);
  floats[HEADER.VERSION] = LAYOUT_VERSION;
  floats[HEADER.OWN_RECORD] = -1;
  for (const [field, value] of Object.entries(header)) floats[Number(field)] = value;
  let place: number = HEADER.LEN;
  for (const [name, { index, stride }] of Object.entries(SECTIONS)) {
    const rows = records[name as SectionName] ?? [];
    floats[HEADER.SECTIONS + 2 * index] = place;
    floats[HEADER.SECTIONS + 2 * index + 1] = rows.length;
    for (const row of rows) {
      for (const [field, value] of Object.entries(row)) floats[place + Number(field)] = value;
      place += stride;
    }
  }
  floats[HEADER.LENGTH] = place;
  return new Frame(floats.buffer);
}
