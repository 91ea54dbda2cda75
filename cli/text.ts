/**
 * What somebody else wrote, fit for a terminal: control characters (escape sequences begin with one), bidirectional
 * overrides and other invisible characters become U+FFFD, and it ends after `limit` characters.
 */
export function printable(text: string, limit = 2000): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, "\uFFFD");
  return clean.length > limit ? `${clean.slice(0, limit)}…` : clean;
}

/** U+2212, which stands for the hyphen of a negative number on its way through the parser: see run.ts. */
export const minusSign = "\u2212";
