/** What is one line of text is read as it stands. No more is escaped than would be Markdown there: some show it raw. */
export function literally(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>~|]/g, "\\$&");
}

/** Code with its fence, which says what it says; what is bold; or a character that is escaped. */
const mark = /(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|\*\*(?=\S)((?:\\.|[^\\*`])+)(?<=\S)\*\*|\\([!-/:-@[-`{-~])/gs;

/**
 * For a reader who is shown the text itself: without the escapes, so that words are as they were written, and without the
 * marks of bold, the only ones of Markdown in our own messages that do not read well as they stand.
 */
export function plain(markdown: string): string {
  return markdown.replaceAll(mark, (all, _fence, bold?: string, escaped?: string) =>
    bold === undefined ? (escaped ?? all) : plain(bold),
  );
}
