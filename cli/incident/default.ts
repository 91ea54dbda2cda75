import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { credentialsPath, storing, writePrivately } from "../client/private_file.ts";
import { printable } from "../text.ts";

/** The incident that `svc incident use` chose. */
export interface DefaultIncident {
  /** The base of its server. */
  server: string;
  id: number;
  name: string;
}

/** Next to the credentials. */
function defaultIncidentPath(env: Environment): string {
  return join(dirname(credentialsPath(env)), "incident.json");
}

/** Undefined if none was chosen. @throws ConfigurationError if the file cannot be read */
export function readDefaultIncident(env: Environment): DefaultIncident | undefined {
  const path = defaultIncidentPath(env);
  let text: string;
  try {
    text = fs.readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new ConfigurationError([`cannot read ${path} (${code})`], { cause: error });
  }
  const chosen = parse(text);
  if (chosen === undefined)
    throw new ConfigurationError([`${path} is corrupt; to fix it: svc incident use ID`]);
  return chosen;
}

function parse(text: string): DefaultIncident | undefined {
  try {
    const { server, id, name } = JSON.parse(text);
    const isValid =
      typeof server === "string" && Number.isSafeInteger(id) && id > 0 && /^[A-Z0-9]+-\d+$/.test(name);
    return isValid ? { server, id, name } : undefined;
  } catch {
    return undefined;
  }
}

/** What the user should know after a choice; undefined if it is in effect. */
export function overridden(env: Environment): string | undefined {
  const variable = env.SVC_INCIDENT?.trim();
  return variable ? `SVC_INCIDENT is set, and takes precedence: ${printable(variable, 80)}` : undefined;
}

export function writeDefaultIncident(env: Environment, { server, id, name }: DefaultIncident): void {
  const path = defaultIncidentPath(env);
  storing(path, () => {
    fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writePrivately(path, `${JSON.stringify({ server, id, name })}\n`);
  });
}

export function clearDefaultIncident(env: Environment): void {
  const path = defaultIncidentPath(env);
  try {
    fs.unlinkSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return;
    throw new ConfigurationError([`cannot remove ${path} (${code})`], { cause: error });
  }
}
