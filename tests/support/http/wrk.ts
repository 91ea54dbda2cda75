/** The failed requests that wrk counts, on connections with keep-alive. */
export async function wrk(
  { port }: { port: number },
  seconds: number,
): Promise<{ requests: number; failed: string[] }> {
  const args = ["-t2", "-c40", `-d${seconds}s`, `http://127.0.0.1:${port}/`];
  const child = Bun.spawn(["wrk", ...args], { stdout: "pipe" });
  const text = await new Response(child.stdout).text();
  const requests = Number(text.match(/(\d+) requests in/)?.[1]);
  return { requests, failed: text.match(/Socket errors.*|Non-2xx.*/g) ?? [] };
}
