import type { Address } from "./forward.ts";

const patienceMilliseconds = 2000;

/**
 * Asks each address at `path` whether it is about to go, as `/healthcheck` says it (docs/release.md), and keeps in
 * `leaving` those that are. One that does not answer says nothing about itself: whether it takes a connection tells.
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

/** Those who stay first, in turn; those who leave serve on for as long as there is nobody else. */
export function inOrder(addresses: readonly string[], leaving: ReadonlySet<string>, turn: number): string[] {
  const rotated = (all: string[]) => all.map((_, n) => all[(turn + n) % all.length]!);
  const stay = addresses.filter((one) => !leaving.has(one));
  return [...rotated(stay), ...rotated(addresses.filter((one) => leaving.has(one)))];
}

async function statusOf(url: string): Promise<unknown> {
  try {
    const signal = AbortSignal.timeout(patienceMilliseconds);
    // A connection of its own: one that is kept would be cut when the server is gone.
    const response = await fetch(url, { signal, redirect: "manual", keepalive: false, proxy: "" });
    return ((await response.json()) as { status?: unknown }).status;
  } catch {
    return undefined;
  }
}
