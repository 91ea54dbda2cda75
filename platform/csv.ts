/**
 * A line of CSV (RFC 4180). A spreadsheet would run what begins like a formula, so such a text gets an apostrophe, which
 * spreadsheets do not show.
 */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cellOf).join(",")}\r\n`;
}

function cellOf(value: string | number | null): string {
  if (typeof value === "number") return String(value);
  const text = /^[\s\p{C}]*[=+\-@＝＋－＠]|^[\t\r\n]/u.test(value ?? "") ? `'${value}` : (value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
