import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { ConfigurationError } from "./errors.ts";
import { whyUnreadable } from "./unreadable.ts";
import type { Environment } from "./variable.ts";

/**
 * The environment of the process, layered over `.env` in the working directory. Only commands that run the service use
 * it: `svc login` ignores a `.env` wherever it is typed.
 *
 * @throws ConfigurationError when the file exists but cannot be read, or has a line that sets no variable
 */
export function readEnvironment(environment: Environment = process.env, file = ".env"): Environment {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as { code?: string }).code === "ENOENT") return environment;
    throw new ConfigurationError([`cannot read ${file}: ${whyUnreadable(cause)}`], { cause });
  }
  const faults = invalidLines(text).map(
    (line) =>
      `${file}, line ${line}: expected NAME=value, with a quoted value closed at its end, or # and a comment`,
  );
  if (faults.length > 0) throw new ConfigurationError(faults);
  return layered(environment, parseEnv(text));
}

/**
 * Layers one environment over another. However the upper one sets a secret (`X` or `X_FILE`), it overrides both of the
 * lower.
 */
export function layered(upper: Environment, lower: Environment): Environment {
  const set = Object.entries(upper).filter(([, value]) => value?.trim());
  const hidden = new Set(set.flatMap(([name]) => [name, `${name}_FILE`, name.replace(/_FILE$/, "")]));
  const rest = Object.entries(lower).filter(([name]) => !hidden.has(name));
  return { ...Object.fromEntries(rest), ...Object.fromEntries(set) };
}

const blank = String.raw`[^\S\n]*`;
const comment = String.raw`(?:#[^\n]*)?`;
const quoted = String.raw`(["'\x60])[\s\S]*?\1${blank}${comment}`;
const assignment = String.raw`(?:export[^\S\n]+)?[A-Za-z_][\w.]*${blank}=${blank}(?:${quoted}|(?!["'\x60])[^\n]*)`;
const entry = new RegExp(`${blank}(?:${assignment}|${comment})(?:\\n|$)`, "y");

/** The numbers of the lines that `parseEnv` would skip or misread. */
function invalidLines(text: string): number[] {
  const invalid: number[] = [];
  for (let at = 0, line = 1; at < text.length;) {
    entry.lastIndex = at;
    const found = entry.exec(text)?.[0];
    if (found === undefined) invalid.push(line);
    const next = found === undefined ? text.indexOf("\n", at) + 1 || text.length : at + found.length;
    line += text.slice(at, next).split("\n").length - 1;
    at = next;
  }
  return invalid;
}
