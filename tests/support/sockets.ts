/** How many connections the system keeps for a listening socket until they are taken; it may keep fewer than it is told. */
export async function backlogOf(port: number): Promise<number> {
  const child = Bun.spawn(["ss", "-Hltn", `sport = :${port}`], { stdout: "pipe" });
  const text = await new Response(child.stdout).text();
  // State, Recv-Q, Send-Q: of a socket that listens, the last is its backlog (ss(8)).
  return Number(text.split(/ +/)[2]);
}
