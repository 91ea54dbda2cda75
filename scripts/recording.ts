import type { Cell } from "../tests/support/cli/terminal_screen.ts";

// The picture of a terminal session in the README: an asciinema recording (the file format asciicast v2) and an SVG that
// shows the same, step by step.

export type Picture = readonly (readonly Cell[])[];

export interface Frame {
  /** Seconds since the beginning. */
  at: number;
  picture: Picture;
  /** Whether the SVG shows it, too: the end of a step, and not the letters while somebody types. */
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

/** The steps as an SVG that shows one after the other; readers who want no motion see the last one. */
export function svgOf({ title, columns, rows, duration, frames }: Recording): string {
  const steps = frames.filter(({ isStep }) => isStep);
  const width = Math.ceil(columns * cell.width + 2 * margin);
  const height = rows * cell.height + 2 * margin;
  const percent = (at: number) => `${((at / duration) * 100).toFixed(2)}%`;
  const keyframes = steps.map(({ at }, index) => {
    const end = steps[index + 1]?.at ?? duration;
    const before = at === 0 ? "" : "0%{opacity:0}";
    const after = end >= duration ? "" : `${percent(end)}{opacity:0}`;
    return `@keyframes f${index}{${before}${percent(at)}{opacity:1}${after}}`;
  });
  const rules = steps.map(
    (_, index) => `#f${index}{opacity:0;animation:f${index} ${duration}s step-end infinite}`,
  );
  const last = steps.length - 1;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${escaped(title)}</title>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d7dae0;white-space:pre}
.b{font-weight:bold}.d{fill:#8b919d}.r{fill:#ff7b72}.y{fill:#e3b341}.g{fill:#56d364}
${keyframes.join("\n")}
${rules.join("\n")}
@media (prefers-reduced-motion){${steps.map((_, index) => `#f${index}{animation:none;opacity:${index === last ? 1 : 0}}`).join("")}}
</style>
<rect width="${width}" height="${height}" rx="8" fill="#16181d"/>
${steps.map(({ picture }, index) => `<g id="f${index}">\n${rowsOf(picture)}</g>`).join("\n")}
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
