import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { appFolder, messagesIn, startServing } from "../../tests/support/http/serving.ts";
import { until } from "../../tests/support/process/until.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());

const elysia = JSON.stringify(join(import.meta.dir, "../../node_modules/elysia"));
const forever = "new Promise(() => setInterval(() => {}, 1000))";

/** Writes an application whose `drain` answers held requests after a moment, then runs `rest`. */
function writeHolding(name: string, rest = forever) {
  writeFileSync(
    join(folder.path, `${name}.ts`),
    `import { Elysia } from ${elysia};
     const held = Promise.withResolvers();
     const drain = async () => { await Bun.sleep(100); held.resolve(); await ${rest}; };
     const app = new Elysia()
       .get("/held", () => { console.error("held"); return held.promise.then(() => "answered"); })
       .get("/stuck", () => { console.error("stuck"); return ${forever}; });
     export const service = { app, drain };`,
  );
}

test("a hanging drain gets no more than the grace time, and requests it releases are answered", async () => {
  writeHolding("hangs");
  await using server = await startServing(folder.path, ["--timeout-graceful-shutdown", "3"], {
    app: "hangs:service",
  });
  const held = server.fetch("/held").then((answer) => answer.text());
  const stuck = server.fetch("/stuck").then(
    () => "answered",
    () => "cut",
  );
  await until("both requests", () => server.said().includes("held") && server.said().includes("stuck"));
  const end = server.end("SIGTERM");
  expect(await held).toBe("answered");
  expect((await end).code).toBe(0);
  expect(await stuck).toBe("cut");
});

test.each([
  ["that hangs", "hasty", forever],
  ["that returns", "brief", "undefined"],
])("requests released by a drain %s are answered even without grace time", async (_, name, rest) => {
  writeHolding(name, rest);
  await using server = await startServing(folder.path, ["--timeout-graceful-shutdown", "0"], {
    app: `${name}:service`,
  });
  const held = server.fetch("/held").then((answer) => answer.text());
  const stuck = server.fetch("/stuck").catch(() => "cut");
  await until("both requests", () => server.said().includes("held") && server.said().includes("stuck"));
  const end = server.end("SIGTERM");
  expect(await held).toBe("answered");
  expect((await end).code).toBe(0);
  expect(await stuck).toBe("cut");
});

test("a drain that finishes after the grace time does not stop the server twice", async () => {
  writeFileSync(
    join(folder.path, "late.ts"),
    `import { Elysia } from ${elysia};
     const over = Promise.withResolvers();
     const flush = async () => { over.resolve(); for (let at = 0; at < 100; at++) await new Promise(setImmediate); };
     export const service = { app: new Elysia(), drain: () => over.promise, flush };`,
  );
  await using server = await startServing(folder.path, ["--timeout-graceful-shutdown", "0"], {
    app: "late:service",
  });
  const { code, stdout, stderr } = await server.end("SIGTERM");
  expect([code, stdout, messagesIn(stderr)]).toEqual([
    0,
    "",
    [`listening on http://127.0.0.1:${server.port}`],
  ]);
});
