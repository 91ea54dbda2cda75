import { withFewMarks } from "../../../platform/text.ts";

/**
 * Folds a text for comparison with terms: compatible spellings (NFKC), case, and runs of white space and hyphens are
 * unified. It converts to upper case first, since `ß` and `SS`, or `ς` and `Σ`, are equal only there.
 */
export function foldText(text: string): string {
  const folded = withFewMarks(text)
    .normalize("NFKC")
    .toUpperCase()
    .toLowerCase()
    .replaceAll("ς", "σ")
    .normalize("NFKC");
  return folded
    .replaceAll("i\u0307", "i") // what JavaScript makes of the Turkish İ
    .replace(/[\u00AD\u200B-\u200D\u2060]/g, "") // invisible: soft hyphens, joiners
    .replace(/[\s\p{Pd}]+/gu, " ")
    .trim();
}

/** How a character affects the words of a text. `apart`: from a script without spaces between words. */
const kinds = ["none", "letter", "katakana", "apart"] as const;
type Kind = (typeof kinds)[number];
const mark = /^\p{M}$/u;
const ofWords = /^[\p{L}\p{M}\p{N}]$/u;
const katakana = /^\p{Script_Extensions=Katakana}$/u;
const apart =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]$/u;
/** The kind of each UTF-16 unit, counted from 1. 0 if not determined yet. */
const known = new Uint8Array(0x1_0000);

/**
 * Whether a word continues directly before or after a place where a term begins or ends: with a letter, mark or number.
 * In a script without spaces between words, each letter may be a word (Unicode, UAX #29, 4.1), but a run of Katakana is
 * one word.
 */
export function hasWordBeside(text: string, at: number, side: "before" | "after"): boolean {
  const [outside, inside] = side === "before" ? [at - 1, at] : [at, at - 1];
  const beside = kindAt(text, outside);
  if (beside === "none") return false;
  if (side === "after" && mark.test(characterAt(text, outside))) return true;
  const within = kindAt(text, inside);
  return beside === "letter"
    ? within === "letter" || within === "none"
    : beside === "katakana" && within === beside;
}

function kindAt(text: string, index: number): Kind {
  if (index < 0 || index >= text.length) return "none";
  const unit = text.charCodeAt(index);
  if (unit >= 0xd800 && unit < 0xe000) return kindOf(characterAt(text, index));
  known[unit] ||= kinds.indexOf(kindOf(String.fromCharCode(unit))) + 1;
  return kinds[known[unit] - 1]!;
}

function kindOf(character: string): Kind {
  if (!ofWords.test(character)) return "none";
  if (katakana.test(character)) return "katakana";
  return apart.test(character) ? "apart" : "letter";
}

/** The character that contains this UTF-16 unit. */
function characterAt(text: string, index: number): string {
  const unit = text.charCodeAt(index);
  const isSecond = unit >= 0xdc00 && unit < 0xe000;
  return String.fromCodePoint(text.codePointAt(isSecond ? index - 1 : index) ?? unit);
}
