// The cost of a stream without an application: a bare Bun.serve that sends the same text to each client. A POST sends
// its body to all of them.
const controllers = new Set<ReadableStreamDefaultController<Uint8Array>>();
const headers = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store, no-transform",
};

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: async (request) => {
    if (request.method === "POST") {
      const bytes = await request.bytes();
      for (const controller of controllers) controller.enqueue(bytes);
      return new Response();
    }
    let own: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        controllers.add(controller);
        controller.enqueue(new TextEncoder().encode("retry: 1000\n\n"));
      },
      cancel: () => void controllers.delete(own),
    });
    return new Response(body, { headers });
  },
});
console.log(`bare on http://127.0.0.1:${server.port}`);

// A module, so that its names are its own.
export {};
