import { type AddressInfo, connect, createServer } from "node:net";

/** An address that leads to a server, but resets the connection when a message contains this text. */
export async function resetAt(url: string, text: string) {
  const to = new URL(url);
  const proxy = createServer((client) => {
    const target = connect(Number(to.port), to.hostname);
    target.pipe(client);
    client.on("data", (data) => (data.includes(text) ? client.resetAndDestroy() : target.write(data)));
    client.on("close", () => target.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  const close = async () => void proxy.close();
  return { url: Object.assign(new URL(url), { port }).href, [Symbol.asyncDispose]: close };
}
