/** The text without these secrets, as they are and as they stand in an address. */
export function mask(text: string, secrets: readonly string[]): string {
  return spellingsOf(secrets).reduce((masked, secret) => masked.replaceAll(secret, "***"), text);
}

/** The longest first: it may hold a shorter one. */
function spellingsOf(secrets: readonly string[]): string[] {
  return secrets
    .filter((secret) => secret !== "")
    .flatMap((secret) => [secret, encoded(secret)])
    .sort((a, b) => b.length - a.length);
}

function encoded(secret: string): string {
  try {
    return encodeURIComponent(secret);
  } catch {
    return secret; // half a surrogate pair
  }
}

/** Of a text that is longer nothing else is looked at: a plugin may hand us hundreds of megabytes. */
const longest = 10_000;

/** One line that is fit for a log and a terminal: no control or invisible characters, no secret, not endless. */
export function masked(text: string, secrets: readonly string[] = [], limit = 300): string {
  const line = beginning(text, secrets)
    .replace(/\s+/gu, " ")
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, "\uFFFD")
    .trim();
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

/** The masked beginning of a text; a secret that its end has cut in two is no part of it. */
function beginning(text: string, secrets: readonly string[]): string {
  if (text.length <= longest) return mask(text, secrets);
  const most = Math.max(0, ...spellingsOf(secrets).map(({ length }) => length));
  const masked = mask(text.slice(0, longest), secrets);
  return masked.slice(0, Math.max(0, masked.length - most));
}

/**
 * What may be said of an error that a plugin threw. Its `detail`, if it is a text (as in platform/errors.ts): that is meant
 * for people. Otherwise its name and code only, since a message of a library may hold an address with a password.
 */
export function describeFault(error: unknown, secrets: readonly string[] = []): string {
  try {
    const { detail } = Object(error) as Record<string, unknown>;
    return masked(typeof detail === "string" && detail.trim() !== "" ? detail : kindOfFault(error), secrets);
  } catch {
    return "unknown"; // a getter threw
  }
}

/** Its name and code, where they are words. */
export function kindOfFault(error: unknown): string {
  try {
    const { name, code } = Object(error) as Record<string, unknown>;
    const kind = typeof name === "string" && /^\w{1,60}$/.test(name) ? name : typeof error;
    return typeof code === "string" && /^\w{1,60}$/.test(code) ? `${kind}, ${code}` : kind;
  } catch {
    return "unknown"; // a getter threw
  }
}

/** Whether a plugin has told people by its error that to try it again is of no use; a library's errors tell us nothing. */
export function saysPermanent(error: unknown): boolean {
  try {
    const { detail, permanent } = Object(error) as Record<string, unknown>;
    return typeof detail === "string" && permanent === true;
  } catch {
    return false; // a getter threw
  }
}

/** The name of the input that the plugin refuses (`InvalidInput` in platform/errors.ts), if it names one. */
export function fieldOf(error: unknown): string | undefined {
  try {
    const { detail, field } = Object(error) as Record<string, unknown>;
    return typeof detail === "string" && typeof field === "string" && /^\w{1,60}$/.test(field)
      ? field
      : undefined;
  } catch {
    return undefined; // a getter threw
  }
}

/** Where an error comes from: the frames of its stack, which hold names of functions and files and no message. */
export function framesOf(error: unknown, secrets: readonly string[] = []): string[] {
  try {
    const stack = error instanceof Error ? error.stack : undefined;
    if (typeof stack !== "string") return [];
    return stack
      .split("\n")
      .filter((line) => /^ {4}at /.test(line))
      .slice(0, 10)
      .map((line) => masked(line, secrets));
  } catch {
    return [];
  }
}
