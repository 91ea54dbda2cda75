/** In a record that has more or fewer fields than there are columns: what is wrong with it. */
export const rowFault = Symbol("row fault");

export type CsvRecord = Record<string, string> & { [rowFault]?: string };

/**
 * The records of a CSV text (RFC 4180; a line may end in LF alone), each under the names of the first line, in lower case.
 * Empty lines are left out.
 *
 * @throws SyntaxError that names the line
 */
export function parseCsv(text: string): CsvRecord[] {
  const [header, ...rows] = parseRows(text);
  if (header === undefined) throw new SyntaxError("it is empty");
  const names = header.fields.map((name) => name.trim().toLowerCase());
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new SyntaxError(`line 1: two columns are called "${twice}"`);
  return rows.map(({ line, fields }) => {
    if (fields.length !== names.length)
      return { [rowFault]: `line ${line}: ${fields.length} fields under ${names.length} columns` };
    return Object.fromEntries(names.map((name, at) => [name, fields[at]!]));
  });
}

interface Row {
  /** Where it begins, from 1. */
  line: number;
  fields: string[];
}

function parseRows(text: string): Row[] {
  const rows: Row[] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    const row: Row = { line, fields: [] };
    for (;;) {
      const field = text[at] === '"' ? quoted(text, at, line) : bare(text, at, line);
      row.fields.push(field.value);
      at = field.end;
      line += field.lines;
      if (text[at] !== ",") break;
      at++;
    }
    if (text[at] === "\r") at++;
    at++; // the line feed, or the end
    line++;
    if (row.fields.length > 1 || row.fields[0] !== "") rows.push(row);
  }
  return rows;
}

interface Field {
  value: string;
  /** What follows it: a comma, the end of the line, the end of the text. */
  end: number;
  /** Line feeds in it. */
  lines: number;
}

function bare(text: string, start: number, line: number): Field {
  const ends = /,|\r?\n|"|$/g;
  ends.lastIndex = start;
  const { index: end, 0: what } = ends.exec(text)!;
  if (what === '"')
    throw new SyntaxError(`line ${line}: a quote within a field that does not begin with one`);
  return { value: text.slice(start, end), end, lines: 0 };
}

function quoted(text: string, start: number, line: number): Field {
  let close = text.indexOf('"', start + 1);
  while (close !== -1 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  if (close === -1) throw new SyntaxError(`line ${line}: a quote that is not closed`);
  const end = close + 1;
  if (!/^(,|\r?\n|$)/.test(text.slice(end, end + 2))) {
    throw new SyntaxError(`line ${line}: something behind a closing quote`);
  }
  const value = text.slice(start + 1, close).replaceAll('""', '"');
  return { value, end, lines: value.split("\n").length - 1 };
}
