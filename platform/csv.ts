/**
 * A line of CSV (RFC 4180). A spreadsheet would run what begins like a formula, so such a text gets an apostrophe, which
 * spreadsheets do not show. So does what follows a separator or the end of a line, because some split there in spite of the
 * quotes.
 */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cellOf).join(",")}\r\n`;
}

function cellOf(value: string | number | null): string {
  if (typeof value === "number") return String(value);
  const parts = (value ?? "").split(/([;\t\r\n])/);
  const text = parts.map((part) => (/^[\s\p{C}]*[=+\-@＝＋－＠]/u.test(part) ? `'${part}` : part)).join("");
  const safe = /^[\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
