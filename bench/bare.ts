// What a poll costs when nothing is checked: the same answer from a bare Bun.serve.
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response('{"status":"pending"}', { headers: { "content-type": "application/json" } }),
});
console.log(`bare on http://127.0.0.1:${server.port}`);
