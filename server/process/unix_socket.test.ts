import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replaceStaleSocket } from "./unix_socket.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-socket-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("a server too busy to accept a connection counts as running, without waiting for it", async () => {
  const path = join(folder, "busy.sock");
  const code = `
    import { dlopen } from "bun:ffi";
    import { listeningSockets } from ${JSON.stringify(join(import.meta.dir, "socket.ts"))};
    const system = dlopen("libc.so.6", { listen: { args: ["i32", "i32"], returns: "i32" } }).symbols;
    Bun.listen({ unix: ${JSON.stringify(path)}, socket: { data() {} } });
    console.log(listeningSockets().every((fd) => system.listen(fd, 1) === 0));
  `;
  const busy = Bun.spawn([process.execPath, "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const waiting: ReturnType<typeof connect>[] = [];
  try {
    const { value } = await busy.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toBe("true\n");
    busy.kill("SIGSTOP");
    for (let at = 0; at < 8; at++) waiting.push(connect({ path }).on("error", () => {}));
    await expect(replaceStaleSocket(path)).rejects.toThrow(`--uds: a server runs on ${path}`);
    expect(existsSync(path)).toBe(true);
  } finally {
    busy.kill("SIGKILL");
    for (const socket of waiting) socket.destroy();
    await busy.exited;
  }
});

test("a stale socket is removed", async () => {
  const path = join(folder, "stale.sock");
  const code = `Bun.listen({ unix: ${JSON.stringify(path)}, socket: { data() {} } }); process.kill(process.pid, "SIGKILL");`;
  await Bun.spawn([process.execPath, "-e", code]).exited;
  expect(existsSync(path)).toBe(true);
  await replaceStaleSocket(path);
  expect(existsSync(path)).toBe(false);
});
