import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../platform/free_port.ts";
import { appFolder } from "../../tests/support/http/serving.ts";
import { until } from "../../tests/support/process/until.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());

test("a server process that cannot be started shows an error page, and waits for a change", async () => {
  const port = await freePort();
  // More than the system allows for one argument.
  writeFileSync(
    join(folder.path, "develops.ts"),
    `import { develop } from ${JSON.stringify(join(import.meta.dir, "develop.ts"))};
     const args = ["x".repeat(200_000)];
     await develop({ args, host: "127.0.0.1", port: ${port}, colour: false, startSeconds: 60 });
     process.exit(0);`,
  );
  const child = Bun.spawn([process.execPath, "develops.ts"], {
    cwd: folder.path,
    env: { PATH: process.env.PATH },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const page = await until("the page", () =>
    fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } }).then(
      (answer) => answer.text(),
      () => undefined,
    ),
  );
  expect(page).toContain("<h1>The server could not be started (E2BIG)</h1>");
  child.kill("SIGTERM");
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([
    0,
    "svc: the server could not be started (E2BIG); waiting for a change\n",
  ]);
});
