const patienceMilliseconds = 2000;

/**
 * Checks at `path` whether each address is stopping, as `/healthcheck` reports (docs/release.md), and keeps those that are
 * in `leaving`. A server that does not answer is not included: connecting to it shows whether it is up.
 */
export async function updateLeaving(
  addresses: readonly string[],
  { port, path }: { port: number; path: string },
  leaving: Set<string>,
): Promise<void> {
  const check = async (address: string) => {
    const host = address.includes(":") ? `[${address}]` : address;
    const status = await statusOf(`http://${host}:${port}${path}`);
    if (status === "leaving") leaving.add(address);
    else if (status !== undefined) leaving.delete(address);
  };
  for (const address of leaving) if (!addresses.includes(address)) leaving.delete(address);
  await Promise.all(addresses.map(check));
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
