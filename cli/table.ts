/** Rows under a header, in columns as wide as they need to be; the last one is not padded. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => Bun.stringWidth(row[column] ?? ""))));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => `${cell}${" ".repeat(Math.max(0, widths[column]! - Bun.stringWidth(cell)))}`)
      .join("  ")
      .trimEnd();
  return `${all.map(line).join("\n")}\n`;
}
