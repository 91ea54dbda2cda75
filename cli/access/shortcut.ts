import { systemClock } from "../../platform/clock.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Output } from "../io.ts";
import { accountOf, findCredential, recordReceipt } from "./cache.ts";
import { type AccessFormat, cachedFormats, formatCredential } from "./format.ts";

/**
 * Prints a cached credential, for tools that run svc each time they start. It runs before the command-line parser is
 * loaded, because loading that takes longer than everything else.
 *
 * @returns whether it printed the credential; if not, the command runs as usual and reports any problems
 */
export function printCached(argv: readonly string[], env: Environment, stdout: Output): boolean {
  try {
    const asked = parse(argv);
    const margin = asked && cachedFormats[asked.format];
    const account = margin && accountOf({ env, server: asked.server });
    if (!account) return false;
    const { role, incident } = asked;
    let isDoubtful = false;
    const warn = () => {
      isDoubtful = true;
    };
    const key = { ...account, role, incident };
    const issued = findCredential(env, key, { now: systemClock.now(), margin, warn });
    if (!issued || isDoubtful) return false;
    stdout.write(formatCredential(asked.format, issued, env));
    recordReceipt(env, key, issued);
    return true;
  } catch {
    return false;
  }
}

interface Asked {
  role: string;
  format: AccessFormat;
  server?: string;
  incident?: string;
}

/** Parses only the simplest spelling. Undefined for any other. */
function parse(argv: readonly string[]): Asked | undefined {
  const [group, command, ...rest] = argv;
  if ((group !== "access" && group !== "credentials") || command !== "get") return undefined;
  const options: Record<string, string> = {};
  const words: string[] = [];
  for (let at = 0; at < rest.length; at++) {
    const [, name, value] = /^--(format|server|incident)(?:=(.+))?$/.exec(rest[at]!) ?? [];
    if (name === undefined) words.push(rest[at]!);
    else if (name in options) return undefined;
    else options[name] = value ?? rest[++at] ?? "";
  }
  const [role, ...more] = words;
  const values = [role ?? "", ...Object.values(options)];
  if (more.length > 0 || values.some((value) => value === "" || value.startsWith("-"))) return undefined;
  if (!(options.format && Object.hasOwn(cachedFormats, options.format))) return undefined;
  return { ...options, role: role!, format: options.format as AccessFormat };
}
