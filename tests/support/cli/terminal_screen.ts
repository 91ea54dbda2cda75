/** A cell of the screen. The second cell of a wide character is empty. */
export interface Cell {
  text: string;
  /** The active SGR parameters, or an empty text. */
  style: string;
}

interface Row {
  cells: Cell[];
  /** Whether the line continues in the next row, because the terminal is too narrow. */
  isWrapped: boolean;
}

// The sequences that svc may write. Others are an error, because they could come from other people's texts.
const sequence = /^\x1b(?:\[(\?)?([\d;]*)([A-Za-z])|\]8;;[\x20-\x7e]*(?:\x1b\\|\x07))/;
const incomplete = /^\x1b(?:\[\??[\d;]*|\](?:8(?:;(?:;[\x20-\x7e]*\x1b?)?)?)?)?$/;
const segmenter = new Intl.Segmenter();

/**
 * Emulates a terminal: a screen of cells with a cursor, wrapped lines, an alternate screen, and lines that rewrap when the
 * size changes, as in most current terminals.
 */
export class TerminalScreen {
  /** The rows that scrolled off the main screen. */
  readonly scrolledOff: string[] = [];
  isAlternate = false;
  isCursorVisible = true;
  #rows: Row[];
  #main: { rows: Row[]; x: number; y: number } | undefined;
  #x = 0;
  #y = 0;
  #style = "";
  #wraps = true;
  #rest = "";

  constructor(
    public columns = 80,
    public height = 24,
  ) {
    this.#rows = this.#empty();
  }

  /** All rows, without trailing spaces. */
  get lines(): string[] {
    return this.#rows.map(({ cells }) => textOf(cells));
  }

  /** The rows up to the last one that is not empty. */
  get text(): string {
    return this.lines.join("\n").trimEnd();
  }

  /** The main screen with its scrollback. */
  get history(): string {
    return [...this.scrolledOff, ...this.lines].join("\n").trimEnd();
  }

  get cells(): readonly (readonly Cell[])[] {
    return this.#rows.map(({ cells }) => cells);
  }

  get cursor(): { x: number; y: number } {
    return { x: this.#x, y: this.#y };
  }

  /** @throws Error for a control character or sequence that svc does not write */
  write(text: string): void {
    let rest = this.#rest + text;
    this.#rest = "";
    while (rest !== "") {
      if (rest.startsWith("\x1b")) {
        const found = sequence.exec(rest);
        if (found === null) {
          if (!incomplete.test(rest))
            throw new Error(`unexpected sequence: ${JSON.stringify(rest.slice(0, 40))}`);
          this.#rest = rest;
          return;
        }
        const [all, isPrivate, parameters = "", final] = found;
        if (final !== undefined) this.#control(isPrivate === "?", parameters, final);
        rest = rest.slice(all.length);
        continue;
      }
      const end = rest.search(/[\x00-\x1f\x7f-\x9f]/);
      if (end === 0) {
        this.#controlCharacter(rest[0]!);
        rest = rest.slice(1);
      } else {
        const plain = end < 0 ? rest : rest.slice(0, end);
        for (const { segment } of segmenter.segment(plain)) this.#put(segment);
        rest = rest.slice(plain.length);
      }
    }
  }

  /** Changes the size. Lines of the main screen rewrap; the alternate screen is cut. */
  resize(columns: number, height = this.height): void {
    if (this.isAlternate) {
      for (const row of this.#rows) row.cells = padded(row.cells.slice(0, columns), columns);
    } else this.#reflow(columns);
    this.columns = columns;
    while (this.#rows.length > height && this.#y < this.#rows.length - 1) this.#rows.pop();
    while (this.#rows.length > height) this.#scroll();
    while (this.#rows.length < height) this.#rows.push(this.#blank());
    this.height = height;
    this.#x = Math.min(this.#x, columns - 1);
    this.#y = Math.min(this.#y, height - 1);
  }

  #control(isPrivate: boolean, parameters: string, final: string): void {
    const [first = 0, second = 0] = parameters.split(";").map(Number);
    const command = isPrivate ? `?${parameters}${final}` : final;
    const count = Math.max(1, first);
    if (command === "m") this.#style = parameters === "" || parameters === "0" ? "" : parameters;
    else if (command === "A") this.#y = Math.max(0, this.#y - count);
    else if (command === "B") this.#y = Math.min(this.height - 1, this.#y + count);
    else if (command === "C") this.#x = Math.min(this.columns - 1, this.#x + count);
    else if (command === "D") this.#x = Math.max(0, this.#x - count);
    else if (command === "G") this.#x = Math.min(this.columns, count) - 1;
    else if (command === "H") {
      this.#y = Math.min(this.height, count) - 1;
      this.#x = Math.min(this.columns, Math.max(1, second)) - 1;
    }
    // The cursor stays in the last column after writing to it.
    else if (command === "K" && first === 0) this.#clear(Math.min(this.#x, this.columns - 1));
    else if (command === "J" && first === 0) {
      this.#clear(Math.min(this.#x, this.columns - 1));
      for (let y = this.#y + 1; y < this.height; y += 1) this.#rows[y] = this.#blank();
    } else if (command === "?25h" || command === "?25l") this.isCursorVisible = final === "h";
    else if (command === "?7h" || command === "?7l") this.#wraps = final === "h";
    else if (command === "?1049h") this.#enter();
    else if (command === "?1049l") this.#leave();
    else if (!/^\?2026[hl]$/.test(command)) throw new Error(`unexpected sequence: ${command}`);
  }

  #controlCharacter(character: string): void {
    if (character === "\r") this.#x = 0;
    else if (character === "\n") {
      this.#rows[this.#y]!.isWrapped = false;
      this.#down();
    } else throw new Error(`unexpected control character: ${JSON.stringify(character)}`);
  }

  #put(segment: string): void {
    const width = Bun.stringWidth(segment);
    // After the last column, the line wraps only when something else is written.
    if (this.#x + width > this.columns && !this.#wraps) this.#x = this.columns - width;
    else if (this.#x + width > this.columns) {
      this.#rows[this.#y]!.isWrapped = true;
      this.#down();
      this.#x = 0;
    }
    const { cells } = this.#rows[this.#y]!;
    if (width === 0) {
      if (this.#x > 0) cells[this.#x - 1]!.text += segment;
      return;
    }
    cells[this.#x] = { text: segment, style: this.#style };
    for (let more = 1; more < width; more += 1) cells[this.#x + more] = { text: "", style: this.#style };
    this.#x += width;
  }

  #clear(from: number): void {
    const row = this.#rows[this.#y]!;
    for (let x = from; x < this.columns; x += 1) row.cells[x] = { text: " ", style: "" };
    row.isWrapped = false;
  }

  #down(): void {
    if (this.#y < this.height - 1) this.#y += 1;
    else {
      this.#scroll();
      this.#y += 1;
      this.#rows.push(this.#blank());
    }
  }

  #scroll(): void {
    const row = this.#rows.shift()!;
    if (!this.isAlternate) this.scrolledOff.push(textOf(row.cells));
    this.#y -= 1;
  }

  #enter(): void {
    if (this.isAlternate) return;
    this.#main = { rows: this.#rows, x: this.#x, y: this.#y };
    this.#rows = this.#empty();
    this.isAlternate = true;
  }

  #leave(): void {
    if (this.#main === undefined) return;
    const { columns, height } = this;
    this.isAlternate = false;
    ({ rows: this.#rows, x: this.#x, y: this.#y } = this.#main);
    this.#main = undefined;
    this.resize(columns, height);
  }

  #reflow(columns: number): void {
    const rows: Row[] = [];
    let cursor: { x: number; y: number } | undefined;
    let line: Cell[] = [];
    let cursorAt: number | undefined;
    this.#rows.forEach((row, y) => {
      if (y === this.#y) cursorAt = line.length + this.#x;
      line.push(...row.cells);
      if (row.isWrapped) return;
      const kept = trimmed(line, cursorAt ?? 0);
      const first = rows.length;
      rows.push(...wrap(kept, columns));
      if (cursorAt !== undefined) {
        let left = cursorAt;
        let at = first;
        while (at < rows.length - 1 && left >= lengthOf(rows[at]!)) left -= lengthOf(rows[at++]!);
        cursor = { x: Math.min(left, columns - 1), y: at };
      }
      line = [];
      cursorAt = undefined;
    });
    for (const row of rows) row.cells = padded(row.cells, columns);
    this.#rows = rows;
    this.#x = cursor?.x ?? 0;
    this.#y = cursor?.y ?? rows.length - 1;
  }

  #empty(): Row[] {
    return Array.from({ length: this.height }, () => this.#blank());
  }

  #blank(): Row {
    return { cells: padded([], this.columns), isWrapped: false };
  }
}

function textOf(cells: readonly Cell[]): string {
  return cells
    .map(({ text }) => text)
    .join("")
    .trimEnd();
}

function padded(cells: Cell[], columns: number): Cell[] {
  return [...cells, ...Array.from({ length: columns - cells.length }, () => ({ text: " ", style: "" }))];
}

/** Removes trailing spaces, but none before the cursor. */
function trimmed(cells: readonly Cell[], cursor: number): Cell[] {
  let end = cells.length;
  while (end > cursor && cells[end - 1]!.text === " " && cells[end - 1]!.style === "") end -= 1;
  return cells.slice(0, end);
}

/** Splits a line into rows of this many columns, but never a wide character. */
function wrap(cells: readonly Cell[], columns: number): Row[] {
  const rows: Row[] = [];
  let row: Cell[] = [];
  for (let at = 0; at < cells.length;) {
    let end = at + 1;
    while (cells[end]?.text === "") end += 1;
    if (row.length + end - at > columns) {
      rows.push({ cells: row, isWrapped: true });
      row = [];
    }
    row.push(...cells.slice(at, end));
    at = end;
  }
  return [...rows, { cells: row, isWrapped: false }];
}

const lengthOf = ({ cells }: Row): number => cells.length;
