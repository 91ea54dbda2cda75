/** A text as SQL has it, for scripts and for several statements in one message, which take no parameters. */
export function literal(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}
