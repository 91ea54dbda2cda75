/** The seconds of silence until the system sends a keep-alive probe on this connection; at most two hours. */
export async function secondsUntilAsked(filter: string): Promise<number> {
  const child = Bun.spawn(["ss", "-Htno", "state", "established", filter], { stdout: "pipe" });
  const text = await new Response(child.stdout).text();
  const [, amount, unit] = text.match(/timer:\(keepalive,([\d.]+)(ms|sec|min)/) ?? [];
  return amount ? Number(amount) * { ms: 0.001, sec: 1, min: 60 }[unit as "ms" | "sec" | "min"] : Infinity;
}
