import { InvalidInput } from "../../../platform/errors.ts";

const longest = 254; // RFC 5321, 4.5.3.1.3, less the angle brackets
const local = /^[\p{L}\p{M}\p{N}!#$&'*+=?^_`{|}~-]+(\.[\p{L}\p{M}\p{N}!#$&'*+=?^_`{|}~-]+)*$/u;
const domainName =
  /^(?=.{1,253}$)[\p{L}\p{M}\p{N}]([\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?(\.[\p{L}\p{M}\p{N}]([\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?)*$/u;

/** Invisible letters, and accents that would combine with the dot or the @ before them. */
const leavesNoMark = /\p{Default_Ignorable_Code_Point}|(?:^|[.@])\p{M}/u;

/**
 * Returns the canonical spelling of a user name: local@domain in NFC and lower case. A bare name is completed with
 * `domain`. Two names are the same user exactly when this returns the same text.
 *
 * Names in any script are allowed, but none that becomes ASCII only by folding (the Kelvin sign is not `k`, a
 * full-width `a` is not `a`): anyone who registered such a name at the issuer would become somebody else here.
 *
 * @throws InvalidInput for `user`; the message never repeats the name
 */
export function canonicalUserName(name: string, domain?: string): string {
  if (name.trim() === "") throw new InvalidInput("user", "The user name is empty");
  if (name.length > longest)
    throw new InvalidInput("user", `The user name is longer than ${longest} characters`);
  if (leavesNoMark.test(name))
    throw new InvalidInput("user", "The user name contains invisible characters or a stray accent");
  // Before NFC, which turns the Kelvin sign into a K.
  if (foldsToAscii(name)) throw new InvalidInput("user", "The user name contains look-alike characters");
  // NFC again, since some letters have a composed form only in lower case.
  const [person = "", ...rest] = name.normalize("NFC").toLowerCase().normalize("NFC").split("@");
  if (rest.length > 1) throw new InvalidInput("user", "The user name contains more than one @");
  const where = rest[0] ?? domain?.toLowerCase();
  if (where === undefined) throw new InvalidInput("user", "The user name needs its domain: name@example.com");
  const whole = `${person}@${where}`;
  if (!local.test(person) || !domainName.test(where) || whole.length > longest) {
    throw new InvalidInput("user", "The user name must look like name@example.com");
  }
  return whole;
}

function foldsToAscii(text: string): boolean {
  for (const character of text) {
    if (character.charCodeAt(0) < 0x80) continue;
    // Folded separately, so that a separate accent stays separate.
    const folded = character.normalize("NFKC").toLowerCase();
    if (/[\0-\x7f]/.test(folded)) return true;
  }
  return false;
}
