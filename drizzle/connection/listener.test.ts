import { expect, test } from "bun:test";
import { createLog } from "../../platform/log.ts";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { Listener } from "./listener.ts";

test("without a connection, it starts, and the log says why", async () => {
  await using database = await createTestDatabase();
  const lines: { msg: string; reason?: string }[] = [];
  const url = new URL(database.url);
  url.pathname = "/nowhere";
  const log = createLog("warn", { write: (line) => void lines.push(JSON.parse(line)) });
  const listener = new Listener(url.href, log);
  await listener.start();
  await listener.stop();
  const reason = `The database nowhere at ${url.host} does not exist: svc database init creates it (see SVC_DATABASE_URL)`;
  expect(lines[0]).toMatchObject({ msg: "there is no listening database connection", reason });
});
