/**
 * The text as terms are compared: compatible spellings are one (NFKC), upper and lower case, and a run of white space
 * and hyphens is one space. By way of upper case, since `ß` and `SS`, or `ς` and `Σ`, meet only there.
 */
export function foldText(text: string): string {
  const folded = text.normalize("NFKC").toUpperCase().toLowerCase().replaceAll("ς", "σ").normalize("NFKC");
  return folded
    .replaceAll("i\u0307", "i") // what JavaScript makes of the Turkish İ
    .replace(/[\u00AD\u200B-\u200D\u2060]/g, "") // seen by nobody: soft hyphens, joiners
    .replace(/[\s\p{Pd}]+/gu, " ")
    .trim();
}

/** What a character is to the words of a text. `apart`: of a script that is written without space between words. */
const kinds = ["none", "letter", "katakana", "apart"] as const;
type Kind = (typeof kinds)[number];
const mark = /^\p{M}$/u;
const ofWords = /^[\p{L}\p{M}\p{N}]$/u;
const katakana = /^\p{Script_Extensions=Katakana}$/u;
const apart =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]$/u;
/** Of each UTF-16 unit, its kind counted from 1; 0 nobody has asked for yet. */
const known = new Uint8Array(0x1_0000);

/**
 * Whether the word goes on directly before or after a place of the text where a term begins or ends: with a letter, mark or
 * number. Where a script leaves no space between words, each of its letters may be a word (Unicode, UAX #29, 4.1), but
 * runs of Katakana are one.
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

/** The character of which this UTF-16 unit is a part. */
function characterAt(text: string, index: number): string {
  const unit = text.charCodeAt(index);
  const isSecond = unit >= 0xdc00 && unit < 0xe000;
  return String.fromCodePoint(text.codePointAt(isSecond ? index - 1 : index) ?? unit);
}
