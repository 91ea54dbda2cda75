import { createServer } from "node:net";
import { SvcError } from "../../platform/errors.ts";
import { UsageError } from "../errors.ts";

/** What is the matter with a port. */
const faults: Readonly<Record<string, string>> = {
  EADDRINUSE: "is in use",
  EACCES: "requires more privileges",
};
/** Of a host that is none of this machine, or none at all. Of most names that nobody knows, Bun gives no code. */
const hostFaults = new Set(["EADDRNOTAVAIL", "ENOTFOUND", "EINVAL", undefined]);

/** @throws SvcError that names the port, who wants it, and the option that changes it; or the host, if that is at fault */
export async function assertFree(host: string, port: number, purpose: string, option: string): Promise<void> {
  try {
    await listenOnce(host, port);
  } catch (cause) {
    const fault = faults[codeOf(cause) ?? ""];
    if (fault === undefined) throw unusable(host, cause);
    throw new SvcError(
      "configuration",
      `Port ${port} of ${host} ${fault}, and ${purpose} needs it: choose another one with ${option}`,
      { cause },
    );
  }
}

/** @throws SvcError for a host where nothing can be listened on */
export async function chooseFreePort(host: string): Promise<number> {
  try {
    return await listenOnce(host, 0);
  } catch (cause) {
    throw unusable(host, cause);
  }
}

/** @throws what the system says */
async function listenOnce(host: string, port: number): Promise<number> {
  const server = createServer();
  // Where there is a port beside it, people write an IPv6 address in brackets.
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

/** gunshi's `parse` of an option that is a port. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new UsageError(`"${text}" is not a port (0 to 65535)`);
  return port;
}
