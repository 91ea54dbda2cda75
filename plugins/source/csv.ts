import { CsvError, parse } from "csv-parse/sync";

/** The error of a record that has more or fewer fields than there are columns. */
export const rowFault = Symbol("row fault");

export type CsvRecord = Record<string, string> & { [rowFault]?: string };

/**
 * Parses a CSV text (RFC 4180; a line may end in LF alone) into records, keyed by the names in the first line in lower
 * case. Empty lines are skipped.
 *
 * @throws SyntaxError that names the line, without any of the text
 */
export function parseCsv(text: string): CsvRecord[] {
  const [header, ...rows] = parseRows(text);
  if (header === undefined) throw new SyntaxError("it is empty");
  const names = header.fields.map((name) => name.trim().toLowerCase());
  const seen = new Set<string>();
  const twice = names.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined) throw new SyntaxError(`line 1: two columns are called "${twice}"`);
  return rows.map(({ line, fields }) => {
    if (fields.length !== names.length)
      return { [rowFault]: `line ${line}: ${fields.length} fields for ${names.length} columns` };
    return Object.fromEntries(names.map((name, at) => [name, fields[at]!]));
  });
}

interface Row {
  /** The line at which it begins, from 1. */
  line: number;
  fields: string[];
}

const faults: Partial<Record<CsvError["code"] | "INVALID_OPENING_QUOTE", string>> = {
  CSV_QUOTE_NOT_CLOSED: "an unclosed quote",
  CSV_INVALID_CLOSING_QUOTE: "text after a closing quote",
  INVALID_OPENING_QUOTE: "a quote in an unquoted field",
};

function parseRows(text: string): Row[] {
  const rows: Row[] = [];
  let line = 1;
  try {
    parse(text, {
      record_delimiter: ["\r\n", "\n"],
      relax_column_count: true,
      on_record: (fields: string[], { lines }) => {
        if (fields.length > 1 || fields[0] !== "") rows.push({ line, fields });
        line = lines + 1;
        return null;
      },
    });
  } catch (error) {
    const fault = error instanceof CsvError ? faults[error.code] : undefined;
    if (fault === undefined) throw error;
    // An unclosed quote is detected only at the end of the text.
    const { code, lines } = error as CsvError & { lines: number };
    throw new SyntaxError(`line ${code === "CSV_QUOTE_NOT_CLOSED" ? line : lines}: ${fault}`);
  }
  return rows;
}
