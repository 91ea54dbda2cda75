import type { Cell } from "../tests/support/cli/terminal_screen.ts";

// The pictures in the README. A terminal session is an asciinema recording (the file format asciicast v2) and an SVG that
// shows the same, step by step. A screenshot contains the text that it shows.

export type Picture = readonly (readonly Cell[])[];

export interface Frame {
  /** Seconds since the beginning. */
  at: number;
  picture: Picture;
  /** Whether the SVG shows it, too: the first command, and the end of each step, but not the letters while somebody types. */
  isStep: boolean;
}

export interface Recording {
  title: string;
  columns: number;
  rows: number;
  /** Seconds. */
  duration: number;
  frames: readonly Frame[];
}

/** The recording as asciicast v2: https://docs.asciinema.org/manual/asciicast/v2/ */
export function castOf({ title, columns, rows, duration, frames }: Recording): string {
  const lines: unknown[] = [{ version: 2, width: columns, height: rows, duration, title }];
  let shown: readonly string[] = [];
  for (const { at, picture } of frames) {
    const now = picture.map(escapesOf);
    const changes = now.flatMap((row, y) =>
      row === (shown[y] ?? "") ? [] : [`\x1b[${y + 1};1H\x1b[K${row}`],
    );
    if (changes.length > 0) lines.push([Number(at.toFixed(2)), "o", changes.join("")]);
    shown = now;
  }
  return `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
}

/** Cells of one style that follow each other. */
function runs(cells: readonly Cell[]): { style: string; text: string }[] {
  const found: { style: string; text: string }[] = [];
  for (const { style, text } of cells) {
    const last = found.at(-1);
    if (last?.style === style) last.text += text;
    else found.push({ style, text });
  }
  const end = found.at(-1);
  if (end?.style === "") end.text = end.text.trimEnd();
  return found.filter(({ text }) => text !== "");
}

function escapesOf(cells: readonly Cell[]): string {
  return runs(cells)
    .map(({ style, text }) => (style === "" ? text : `\x1b[${style}m${text}\x1b[0m`))
    .join("");
}

const cell = { width: 8.4, height: 18 };
const margin = 14;
const classes: Record<string, string> = { "1": "b", "2": "d", "31": "r", "33": "y", "32": "g" };

/** The steps as an SVG that shows one after the other. Without animations, it shows the last one. */
export function svgOf({ title, columns, rows, duration, frames }: Recording): string {
  const steps = frames.filter(({ isStep }) => isStep);
  const width = Math.ceil(columns * cell.width + 2 * margin);
  const height = rows * cell.height + 2 * margin;
  const percent = (at: number) => `${((at / duration) * 100).toFixed(2)}%`;
  const last = steps.length - 1;
  const rules = steps.map(({ at }, index) => {
    const before = index === 0 ? "0%" : `0%{opacity:0}${percent(at)}`;
    const after = index === last ? "" : `${percent(steps[index + 1]!.at)}{opacity:0}`;
    return `@keyframes f${index}{${before}{opacity:1}${after}}#f${index}{animation:f${index} ${duration}s step-end infinite}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${escaped(title)}</title>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d7dae0;white-space:pre}
.b{font-weight:bold}.d{fill:#8b919d}.r{fill:#ff7b72}.y{fill:#e3b341}.g{fill:#56d364}
@media (prefers-reduced-motion:no-preference){
${rules.join("\n")}
}
</style>
<rect width="${width}" height="${height}" rx="8" fill="#16181d"/>
${steps.map(({ picture }, index) => `<g id="f${index}"${index === last ? "" : ' opacity="0"'}>\n${rowsOf(picture)}</g>`).join("\n")}
</svg>
`;
}

function rowsOf(picture: Picture): string {
  return picture
    .map((cells, y) => {
      const row = runs(cells).map(({ style, text }) => {
        const name = classes[style];
        return name === undefined ? escaped(text) : `<tspan class="${name}">${escaped(text)}</tspan>`;
      });
      const baseline = margin + (y + 0.75) * cell.height;
      return row.length === 0 ? "" : `<text x="${margin}" y="${baseline}">${row.join("")}</text>\n`;
    })
    .join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

// https://www.w3.org/TR/png-3/: eight bytes, then chunks of a length, a type, data and a checksum. IEND is the last one.
const signatureBytes = 8;
const aroundData = 12;
const textChunk = { type: "iTXt", before: "Description\0\0\0\0\0" };

/** A PNG with the text that it shows. */
export function withText(png: Buffer, text: string): Buffer {
  const typed = Buffer.from(textChunk.type + textChunk.before + text);
  const chunk = Buffer.alloc(aroundData + typed.length - textChunk.type.length);
  chunk.writeUInt32BE(typed.length - textChunk.type.length);
  typed.copy(chunk, 4);
  chunk.writeUInt32BE(Bun.hash.crc32(typed), chunk.length - 4);
  return Buffer.concat([png.subarray(0, -aroundData), chunk, png.subarray(-aroundData)]);
}

/** The text of a PNG that `withText` made; undefined for others. */
export function textIn(png: Buffer): string | undefined {
  for (let at = signatureBytes; at < png.length;) {
    const length = png.readUInt32BE(at);
    const typed = png.toString("utf8", at + 4, at + 8 + length);
    const start = textChunk.type + textChunk.before;
    if (typed.startsWith(start)) return typed.slice(start.length);
    at += aroundData + length;
  }
  return undefined;
}
