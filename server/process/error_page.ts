import { pageHeaders } from "../page/page.ts";

/** Answers every request with the output of a failed process, until it is stopped. */
export function errorPage(
  { host, port }: { host: string; port: number },
  how: string,
  output: readonly string[],
): Bun.Server<unknown> {
  const text = Bun.escapeHTML(Bun.stripANSI(output.join("\n")));
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="1">
<title>svc: the server ${Bun.escapeHTML(how)}</title>
<h1>The server ${Bun.escapeHTML(how)}</h1>
<pre>${text}</pre>
<p>It starts again when a file changes.</p>
</html>
`;
  return Bun.serve({
    hostname: host,
    port,
    // The previous or next process shares it for a moment.
    reusePort: true,
    development: false,
    // It shows whatever the process printed.
    fetch: () => new Response(page, { status: 500, headers: pageHeaders }),
  });
}
