/** Escapes one line of text for Markdown. Escapes no more than necessary, because some readers show it raw. */
export function literally(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>~|]/g, "\\$&");
}

/** A code span including its backticks, which is kept as it is; bold text; or an escaped character. */
const mark = /(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|\*\*(?=\S)((?:\\.|[^\\*`])+)(?<=\S)\*\*|\\([!-/:-@[-`{-~])/gs;

/**
 * Converts Markdown for a reader that shows plain text: removes escapes, to restore the original words, and bold marks,
 * the only marks in our messages that read badly as plain text.
 */
export function plain(markdown: string): string {
  return markdown.replaceAll(mark, (all, _fence, bold?: string, escaped?: string) =>
    bold === undefined ? (escaped ?? all) : plain(bold),
  );
}
