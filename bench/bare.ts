// The cost of a poll without any checks: the same response from a bare Bun.serve.
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response('{"status":"pending"}', { headers: { "content-type": "application/json" } }),
});
console.log(`bare on http://127.0.0.1:${server.port}`);
