import { expect, spyOn, test } from "bun:test";
import { Server } from "node:net";
import { freePort } from "./free_port.ts";

test("a free port is none of those that are still to be used", async () => {
  const servers = new Set<Server>();
  const address = spyOn(Server.prototype, "address").mockImplementation(function (this: Server) {
    const port = 7000 + servers.add(this).size;
    return { address: "127.0.0.1", family: "IPv4", port };
  });
  try {
    expect(await freePort("127.0.0.1", [7001, 7002])).toBe(7003);
  } finally {
    address.mockRestore();
  }
});

test("a free port is none that the system gives to others meanwhile", async () => {
  for (let nth = 0; nth < 50; nth += 1) expect(await freePort()).toBeWithin(10_000, 32_768);
});

test("a port that somebody uses is not free, and another one is chosen", async () => {
  let refused = 0;
  const listen = Server.prototype.listen;
  using _ = spyOn(Server.prototype, "listen").mockImplementation(function (this: Server, ...args: unknown[]) {
    if (args[0] === 0 || refused++ < 3) return listen.apply(this, args as [unknown]);
    this.emit("error", Object.assign(new Error(), { code: "EADDRINUSE" }));
    return this;
  } as typeof listen);
  expect(await freePort()).toBeGreaterThan(0);
});
