import { expect, test } from "bun:test";
import { createLog } from "../../platform/log.ts";
import type { Deps } from "../deps.ts";
import { ReadinessCheck } from "./readiness.ts";

test("each reason why the database does not answer is logged: a closed connection, then a password", async () => {
  const told: string[] = [];
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line);
    told.push([msg, reason].filter(Boolean).join(": "));
  };
  let code = "57P01";
  const refuse = () => Promise.reject(Object.assign(new Error("no"), { code }));
  const db = new Proxy({}, { get: () => refuse }) as Deps["db"];
  const log = createLog("info", { write });
  const databaseAnswer = { at: Number.NEGATIVE_INFINITY };
  const check = new ReadinessCheck({ db, keys: {} as Deps["keys"], log, databaseAnswer });
  for (code of ["57P01", "28P01", "57P01", "28P01"])
    expect(await check.now()).toMatchObject({ ready: false, database: "unreachable" });
  expect(told).toEqual([
    "not ready: the database does not answer: PostgreSQL closed the connection: run it again",
    "not ready: the database does not answer: PostgreSQL refuses this user or password: see SVC_DATABASE_URL",
  ]);
});
