import { expect, test } from "bun:test";
import { isSource } from "./watch.ts";

test("a program is made of source files and .env, not of logs, data and leftovers of editors", () => {
  const names = ["a.ts", "b/c.tsx", "d.mjs", "e.cts", "package.json", "up.sql", ".env", "f/.env"];
  expect(names.filter((name) => !isSource(name))).toEqual([]);
  const others = [
    "server.log",
    "out.txt",
    "data.db",
    "svc-backup.dump",
    "a.ts~",
    "4913",
    ".env.before",
    "ts",
  ];
  expect(others.filter(isSource)).toEqual([]);
});
