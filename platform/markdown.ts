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

/**
 * Escapes a whole text, also at the beginning of its lines: what Markdown would take for markup, or a terminal for a command,
 * is shown as it was typed.
 */
export function asTyped(text: string): string {
  return (
    withoutControls(text)
      .replaceAll(/[\\`*_{}[\]<>|#~!&]/g, "\\$&")
      .replaceAll(
        /^([ \t]*)(?:[-+](?=\s|$)|[-=](?=[-= \t]*$)|(\d{1,9})[.)](?=\s|$))/gm,
        (mark, space: string, number = "") => {
          const at = space.length + number.length;
          return `${mark.slice(0, at)}\\${mark.slice(at)}`;
        },
      )
      // Would make code of a line, or join it to the one before.
      .replaceAll(/^[ \t]+(?=\S)/gm, (space) => space.replaceAll("\t", "    ").replaceAll(" ", "&nbsp;"))
  );
}

/** Without what moves a cursor or reverses the text that follows. */
export function withoutControls(text: string): string {
  return text
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
