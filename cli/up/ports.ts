import { SvcError } from "../../platform/errors.ts";
import { freePort, listenOnce } from "../../platform/free_port.ts";
import { UsageError } from "../errors.ts";

/** Why a port cannot be used, by error code. */
const faults: Readonly<Record<string, string>> = {
  EADDRINUSE: "is in use",
  EACCES: "requires more privileges",
};
/** Codes for an address that is not of this machine. For most unknown names, Bun gives no code. */
const hostFaults = new Set(["EADDRNOTAVAIL", "ENOTFOUND", "EINVAL", undefined]);

/** @throws SvcError that names the port and the option to change it, or an invalid host */
export async function assertFree(host: string, port: number, option: string): Promise<void> {
  const fault = await portFault(host, port);
  if (fault !== undefined) throw new SvcError("configuration", `${fault}: choose another one with ${option}`);
}

/** Why the port cannot be used; undefined if it can. @throws SvcError for an invalid host */
export async function portFault(host: string, port: number): Promise<string | undefined> {
  try {
    await listenOnce(host, port);
    return undefined;
  } catch (cause) {
    const fault = faults[codeOf(cause) ?? ""];
    if (fault === undefined) throw unusable(host, cause);
    return `Port ${port} of ${host} ${fault}`;
  }
}

/** Chooses none of `others`, which are still to be used. @throws SvcError for an invalid host */
export async function chooseFreePort(host: string, others?: readonly number[]): Promise<number> {
  try {
    return await freePort(host, others);
  } catch (cause) {
    throw unusable(host, cause);
  }
}

function unusable(host: string, cause: unknown): SvcError {
  const code = codeOf(cause);
  const fault = hostFaults.has(code) ? "is not an address of this machine" : `cannot be used (${code})`;
  return new SvcError("configuration", `${host} ${fault}`, { cause });
}

const codeOf = (cause: unknown) => (cause as NodeJS.ErrnoException).code;

/** gunshi's `parse` of a port. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new UsageError(`"${text}" is not a port (0 to 65535)`);
  return port;
}
