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
