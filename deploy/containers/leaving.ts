import type { Address } from "./forward.ts";

const patienceMilliseconds = 2000;

/**
 * Checks at `path` whether each address is stopping, as `/healthcheck` reports (docs/release.md), and keeps those that are
 * in `leaving`. A server that does not answer is not included: connecting to it shows whether it is up.
 */
export async function askWhoLeaves(
  addresses: readonly string[],
  { port, path }: { port: Address["port"]; path: string },
  leaving: Set<string>,
): Promise<void> {
  const ask = async (address: string) => {
    const host = address.includes(":") ? `[${address}]` : address;
    const said = await statusOf(`http://${host}:${port}${path}`);
    if (said === "leaving") leaving.add(address);
    else if (said !== undefined) leaving.delete(address);
  };
  for (const address of leaving) if (!addresses.includes(address)) leaving.delete(address);
  await Promise.all(addresses.map(ask));
}

/** Servers that stay come first, in turn; stopping ones are used only if there are no others. */
export function inOrder(addresses: readonly string[], leaving: ReadonlySet<string>, turn: number): string[] {
  const rotated = (all: string[]) => all.map((_, n) => all[(turn + n) % all.length]!);
  const stay = addresses.filter((one) => !leaving.has(one));
  return [...rotated(stay), ...rotated(addresses.filter((one) => leaving.has(one)))];
}

async function statusOf(url: string): Promise<unknown> {
  try {
    const signal = AbortSignal.timeout(patienceMilliseconds);
    // A new connection, because a reused one would be cut when the server exits.
    const response = await fetch(url, { signal, redirect: "manual", keepalive: false, proxy: "" });
    return ((await response.json()) as { status?: unknown }).status;
  } catch {
    return undefined;
  }
}
