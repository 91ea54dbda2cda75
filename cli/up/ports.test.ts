import { expect, spyOn, test } from "bun:test";
import { Server } from "node:net";
import { assertFree, chooseFreePort } from "./ports.ts";

test("an address may stand in brackets, as in a URL", async () => {
  const port = await chooseFreePort("[127.0.0.1]");
  await assertFree("[127.0.0.1]", port, "--port");
});

test("an address of another machine is reported without suggesting another port", async () => {
  const fault = "192.0.2.1 is not an address of this machine";
  await expect(assertFree("192.0.2.1", 8000, "--port")).rejects.toMatchObject({
    detail: fault,
  });
  await expect(chooseFreePort("192.0.2.1")).rejects.toMatchObject({ detail: fault });
  await expect(chooseFreePort("nowhere.invalid")).rejects.toMatchObject({
    detail: "nowhere.invalid is not an address of this machine",
  });
});

test.each(["EMFILE", "EACCES", "EADDRINUSE"])("%s does not blame the address with port 0", async (code) => {
  const listen = spyOn(Server.prototype, "listen").mockImplementation(function (this: Server) {
    this.emit("error", Object.assign(new Error(code), { code }));
    return this;
  });
  try {
    await expect(chooseFreePort("127.0.0.1")).rejects.toMatchObject({
      code: "configuration",
      detail: `127.0.0.1 cannot be used (${code})`,
    });
  } finally {
    listen.mockRestore();
  }
});
