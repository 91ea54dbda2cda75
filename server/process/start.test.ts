import { expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StartOptions } from "./options.ts";
import { startServer } from "./start.ts";

const options: Omit<StartOptions, "app"> = {
  host: "127.0.0.1",
  port: 8000,
  proxyHeaders: false,
  accessLog: true,
  header: [],
  supervised: false,
  takesOver: false,
  whenReady: false,
  watchdog: false,
  timeoutKeepAlive: 60,
  timeoutDrain: 0,
  timeoutGracefulShutdown: 5,
};
const environment = { SVC_PUBLIC_URL: "http://127.0.0.1:8000" };

test.each([
  ["server", "is not <module>:<attribute>"],
  ["nowhere/at/all:app", "There is no module nowhere/at/all"],
  [":app", "is not <module>:<attribute>"],
])("APP %p: one clear line", async (app, sentence) => {
  await expect(startServer({ ...options, app }, environment)).rejects.toThrow(sentence);
});

test("a missing attribute, or one that is not an application, is named", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-app-"));
  const module = join(directory, "mine.ts");
  await writeFile(module, "export const app = 42;\nexport const broken = { listen: true };\n");
  const start = (attribute: string) =>
    startServer({ ...options, app: `${module}:${attribute}` }, environment);
  await expect(start("missing")).rejects.toThrow('has no "missing"');
  await expect(start("app")).rejects.toThrow("is not an application");
  await expect(start("broken")).rejects.toThrow("is not an application");
  await rm(directory, { recursive: true });
});

test("port 0 without a public URL is refused, because terminals would not know the address", async () => {
  await expect(startServer({ ...options, port: 0, app: "server/main:app" }, {})).rejects.toThrow(
    "SVC_PUBLIC_URL",
  );
});
