/** How many connections the system keeps for a listening socket until they are taken; it may keep fewer than it is told. */
export async function backlogOf(port: number): Promise<number> {
  const child = Bun.spawn(["ss", "-Hltn", `sport = :${port}`], { stdout: "pipe" });
  const text = await new Response(child.stdout).text();
  // State, Recv-Q, Send-Q: of a socket that listens, the last is its backlog (ss(8)).
  return Number(text.split(/ +/)[2]);
}

/** After how much more silence the system asks the other end of this connection whether it is there; at most two hours. */
export async function secondsUntilAsked(filter: string): Promise<number> {
  const child = Bun.spawn(["ss", "-Htno", "state", "established", filter], { stdout: "pipe" });
  const text = await new Response(child.stdout).text();
  const [, amount, unit] = text.match(/timer:\(keepalive,([\d.]+)(ms|sec|min)/) ?? [];
  return amount ? Number(amount) * { ms: 0.001, sec: 1, min: 60 }[unit as "ms" | "sec" | "min"] : Infinity;
}
