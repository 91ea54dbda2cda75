import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { runHere } from "../../../tests/support/cli/io.ts";
import { sourceProgram } from "../../../tests/support/cli/process.ts";
import { startTestServer } from "../../../tests/support/http/server.ts";

test("prints a table of Path, Authenticated, Methods, without configuration or database", async () => {
  const { code, stdout, stderr } = await runHere(["server", "routes"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^Path +Authenticated +Methods$/);
  const rows = lines.map((line) => line.split(/ +/).join(" "));
  // As in the reference.
  expect(rows).toContain("/healthcheck False GET");
  expect(rows).toContain("/noauth/v1/challenge:generator/{userName} False GET");
  expect(rows).toContain("/noauth/v1/challenge:poller/{challengeToken} False GET");
  expect(rows).toContain("/challenge:validator/{challengeToken} False GET");
});

test("from source, it works in any directory", async () => {
  const child = Bun.spawn([...sourceProgram, "server", "routes"], { cwd: tmpdir(), stderr: "inherit" });
  expect(await new Response(child.stdout).text()).toContain("/healthcheck");
});

test("each row is a route of the application, with the correct authentication", async () => {
  const { stdout } = await runHere(["server", "routes", "--json"]);
  const rows = JSON.parse(stdout) as { path: string; authenticated: boolean; method: string }[];
  await using server = await startTestServer();
  const listed = new Set(
    rows.map(({ method, path }) => `${method} ${path.replace(/(?<=\/challenge)[:_]\w+/, "")}`),
  );
  const served = server.app.routes.map(
    ({ method, path }) =>
      `${method} ${path.replace("challenge:validator", "challenge").replaceAll(/\/:(\w+)/g, "/{$1}")}`,
  );
  const protocol = ["GET /noauth/v1/challenge/{userName}", "GET /noauth/v1/challenge/{challengeToken}"];
  expect([...listed].sort()).toEqual(
    [...served.filter((route) => !route.includes(" /noauth/")), ...protocol].sort(),
  );
  for (const { path, method, authenticated } of rows) {
    const address = path.replaceAll(/\{\w+\}/g, "1");
    const { headers } = await server.fetch(address, { method });
    const asks = headers.get("www-authenticate")?.startsWith("Bearer") === true;
    expect(`${method} ${path} ${asks}`).toBe(`${method} ${path} ${authenticated}`);
  }
});
