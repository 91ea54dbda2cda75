import { createServer } from "node:net";
import { SvcError } from "../../core/errors.ts";
import { UsageError } from "../errors.ts";

/** @throws SvcError that names the port, who wants it, and the option that changes it */
export async function assertFree(host: string, port: number, purpose: string, option: string): Promise<void> {
  try {
    await listenOnce(host, port);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const reason = { EADDRINUSE: "is taken", EACCES: "may not be used without more rights" }[code ?? ""];
    throw new SvcError(
      "configuration",
      `Port ${port} of ${host} ${reason ?? `cannot be used (${code})`}, and ${purpose} needs it: choose another one with ${option}`,
      { cause },
    );
  }
}

export function chooseFreePort(host: string): Promise<number> {
  return listenOnce(host, 0);
}

async function listenOnce(host: string, port: number): Promise<number> {
  const server = createServer();
  await new Promise<void>((settle, reject) => server.once("error", reject).listen(port, host, settle));
  const { port: bound } = server.address() as { port: number };
  await new Promise((settle) => server.close(settle));
  return bound;
}

/** gunshi's `parse` of an option that is a port. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new UsageError(`"${text}" is not a port (0 to 65535)`);
  return port;
}
