/** Replaces these secrets in the text, both as they are and URL-encoded. */
export function mask(text: string, secrets: readonly string[]): string {
  return spellingsOf(secrets).reduce((masked, secret) => masked.replaceAll(secret, "***"), text);
}

/** Longest first, because it may contain a shorter one. */
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

/** Only this much of a text is read: a plugin may give us hundreds of megabytes. */
const longest = 10_000;

/** Returns one line that is safe for a log and a terminal: masked, short, without control or invisible characters. */
export function masked(text: string, secrets: readonly string[] = [], limit = 300): string {
  const line = beginning(text, secrets)
    .replace(/\s+/gu, " ")
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, "\uFFFD")
    .trim();
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

/** Returns the masked beginning of a text, without a secret that the cut has split. */
function beginning(text: string, secrets: readonly string[]): string {
  if (text.length <= longest) return mask(text, secrets);
  const most = Math.max(0, ...spellingsOf(secrets).map(({ length }) => length));
  const masked = mask(text.slice(0, longest), secrets);
  return masked.slice(0, Math.max(0, masked.length - most));
}

/** The parts that we use of what a plugin threw. Undefined if a getter throws, too. */
function readThrown(error: unknown) {
  try {
    const { name, code, detail, permanent, retryAfter, field } = Object(error) as Record<string, unknown>;
    return { name, code, detail, permanent, retryAfter, field };
  } catch {
    return undefined;
  }
}

/** The error's `detail`, a text for people (as in platform/errors.ts). Undefined for any other error. */
export function detailOf(error: unknown): string | undefined {
  const detail = readThrown(error)?.detail;
  return typeof detail === "string" && detail.trim() !== "" ? detail : undefined;
}

/**
 * Describes an error that a plugin threw, by its `detail`. Without one, only the name and code are used, since a
 * library's message may contain an address with a password.
 */
export function describeFault(error: unknown, secrets: readonly string[] = []): string {
  // A detail may end with the command that helps.
  return masked(detailOf(error) ?? kindOfFault(error), secrets, 1000);
}

/** The error's name and code, if they are words. */
export function kindOfFault(error: unknown): string {
  const read = readThrown(error);
  if (read === undefined) return "unknown";
  const { name, code } = read;
  const kind = typeof name === "string" && /^\w{1,60}$/.test(name) ? name : typeof error;
  return typeof code === "string" && /^\w{1,60}$/.test(code) ? `${kind}, ${code}` : kind;
}

/** Whether a plugin's error says that a retry is useless. Only an error with a detail counts, never a library's. */
export function saysPermanent(error: unknown): boolean {
  const read = readThrown(error);
  return typeof read?.detail === "string" && read.permanent === true;
}

/** For how many seconds a plugin's error asks us to wait before a retry. */
export function retryAfterOf(error: unknown): number | undefined {
  const read = readThrown(error);
  if (typeof read?.detail !== "string" || typeof read.retryAfter !== "number") return undefined;
  return Number.isFinite(read.retryAfter) ? read.retryAfter : undefined;
}

/** The name of the input field that the plugin refuses (`InvalidInput` in platform/errors.ts), if it names one. */
export function fieldOf(error: unknown): string | undefined {
  const read = readThrown(error);
  if (typeof read?.detail !== "string" || typeof read.field !== "string") return undefined;
  return /^\w{1,60}$/.test(read.field) ? read.field : undefined;
}

/** Where an error was thrown: the frames of its stack, which name functions and files but hold no message. */
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
