/** What is one line of text is read as it stands. No more is escaped than would be Markdown there: some show it raw. */
export function literally(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>~|]/g, "\\$&");
}

/** Code with its fence, which says what it says, or a character that is escaped. */
const codeOrEscape = /(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|\\([!-/:-@[-`{-~])/gs;

/** For a reader who is shown the text itself: without the escapes, so that words are as they were written. */
export function unescaped(markdown: string): string {
  return markdown.replaceAll(codeOrEscape, (all, _fence, escaped?: string) => escaped ?? all);
}
