/** What is one line of text is read as it stands. No more is escaped than would be Markdown there: some show it raw. */
export function literally(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>~|]/g, "\\$&");
}
