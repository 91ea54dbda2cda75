/**
 * The text as terms are compared: compatible spellings are one (NFKC), upper and lower case, and a run of white space
 * and hyphens is one space. By way of upper case, since `ß` and `SS`, or `ς` and `Σ`, meet only there.
 */
export function foldText(text: string): string {
  const folded = text.normalize("NFKC").toUpperCase().toLowerCase().replaceAll("ς", "σ").normalize("NFKC");
  return folded
    .replace(/[\u00AD\u200B-\u200D\u2060]/g, "") // seen by nobody: soft hyphens, joiners
    .replace(/[\s\p{Pd}]+/gu, " ")
    .trim();
}

const word = /^[\p{L}\p{M}\p{N}]$/u;
/** Of each UTF-16 unit: 1 is part of a word, 2 is none, 0 nobody has asked yet. */
const known = new Uint8Array(0x1_0000);

/** Whether the character directly before or after a place of the text is part of a word: a letter, mark or number. */
export function hasWordBeside(text: string, at: number, side: "before" | "after"): boolean {
  const index = side === "before" ? at - 1 : at;
  if (index < 0 || index >= text.length) return false;
  const unit = text.charCodeAt(index);
  if (unit >= 0xd800 && unit < 0xe000) {
    const pair = text.codePointAt(unit >= 0xdc00 ? index - 1 : index) ?? unit;
    return word.test(String.fromCodePoint(pair));
  }
  known[unit] ||= word.test(String.fromCharCode(unit)) ? 1 : 2;
  return known[unit] === 1;
}
