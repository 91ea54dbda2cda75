/** The text without these secrets, as they are and as they stand in an address. */
export function mask(text: string, secrets: readonly string[]): string {
  const spellings = secrets
    .filter((secret) => secret !== "")
    .flatMap((secret) => [secret, encoded(secret)])
    // A longer one may hold a shorter one.
    .sort((a, b) => b.length - a.length);
  return spellings.reduce((masked, secret) => masked.replaceAll(secret, "***"), text);
}

function encoded(secret: string): string {
  try {
    return encodeURIComponent(secret);
  } catch {
    return secret; // half a surrogate pair
  }
}

/** One line that is fit for a log and a terminal: no control or invisible characters, no secret, not endless. */
export function shown(text: string, secrets: readonly string[] = [], limit = 300): string {
  const line = mask(text, secrets)
    .replace(/\s+/gu, " ")
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, "\uFFFD")
    .trim();
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

/**
 * What may be said of an error that a plugin threw. Its `detail`, if it is a text (as in core/errors.ts): that is meant
 * for people. Otherwise its name and code only, since a message of a library may hold an address with a password.
 */
export function describeFault(error: unknown, secrets: readonly string[] = []): string {
  try {
    const { detail, name, code } = Object(error) as Record<string, unknown>;
    if (typeof detail === "string" && detail.trim() !== "") return shown(detail, secrets);
    const kind = typeof name === "string" && /^\w{1,60}$/.test(name) ? name : typeof error;
    const words = typeof code === "string" && /^\w{1,60}$/.test(code) ? `${kind}, ${code}` : kind;
    return shown(words, secrets);
  } catch {
    return "unknown"; // a getter threw
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
      .map((line) => shown(line, secrets));
  } catch {
    return [];
  }
}
