import { InvalidInput } from "../../../platform/errors.ts";

const longest = 254; // RFC 5321, 4.5.3.1.3, less the angle brackets
const local = /^[\p{L}\p{M}\p{N}!#$&'*+=?^_`{|}~-]+(\.[\p{L}\p{M}\p{N}!#$&'*+=?^_`{|}~-]+)*$/u;
const domainName =
  /^(?=.{1,253}$)[\p{L}\p{M}\p{N}]([\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?(\.[\p{L}\p{M}\p{N}]([\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?)*$/u;

/** Letters that are fillers, and accents that would stand on the dot or the @ before them. */
const leavesNoMark = /\p{Default_Ignorable_Code_Point}|(?:^|[.@])\p{M}/u;

/**
 * The one spelling of a user name: local@domain in NFC and lower case; a bare name is completed with `domain`.
 * Two names are the same user exactly when this returns the same text.
 *
 * Names in any script are good, but none that only folding turns into ASCII (the Kelvin sign is no `k`, a full-width
 * `a` no `a`): whoever can register such a name at the issuer would become somebody else here.
 *
 * @throws InvalidInput naming `user`; the message never repeats the name
 */
export function canonicalUserName(name: string, domain?: string): string {
  if (name.trim() === "") throw new InvalidInput("user", "The user name is empty");
  if (name.length > longest)
    throw new InvalidInput("user", `The user name is longer than ${longest} characters`);
  if (leavesNoMark.test(name))
    throw new InvalidInput("user", "The user name contains invisible characters or a stray accent");
  // Before NFC, which itself turns the Kelvin sign into a K.
  if (foldsToAscii(name)) throw new InvalidInput("user", "The user name contains look-alike characters");
  // Again, since some letters have a composed form in lower case only.
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
    // Folded by itself: an accent that stands apart stays apart.
    const folded = character.normalize("NFKC").toLowerCase();
    if (/[\0-\x7f]/.test(folded)) return true;
  }
  return false;
}
