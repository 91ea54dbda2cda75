import { createServer } from "node:net";
import { SvcError } from "../../platform/errors.ts";
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
  try {
    await listenOnce(host, port);
  } catch (cause) {
    const fault = faults[codeOf(cause) ?? ""];
    if (fault === undefined) throw unusable(host, cause);
    throw new SvcError(
      "configuration",
      `Port ${port} of ${host} ${fault}: choose another one with ${option}`,
      { cause },
    );
  }
}

/** @throws SvcError for an invalid host */
export async function chooseFreePort(host: string): Promise<number> {
  try {
    return await listenOnce(host, 0);
  } catch (cause) {
    throw unusable(host, cause);
  }
}

/** @throws the error of the system */
async function listenOnce(host: string, port: number): Promise<number> {
  const server = createServer();
  // IPv6 addresses are often written in brackets.
  const address = host.replace(/^\[(.*)\]$/, "$1");
  await new Promise<void>((settle, reject) => server.once("error", reject).listen(port, address, settle));
  const { port: bound } = server.address() as { port: number };
  await new Promise((settle) => server.close(settle));
  return bound;
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
