import { afterEach, expect, jest, test } from "bun:test";
import { createLog } from "../../platform/log.ts";
import type { Deps } from "../deps.ts";
import { ReadinessCheck } from "./readiness.ts";

afterEach(() => {
  jest.useRealTimers();
});

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

test("a question is waited for once: after three seconds without an answer, the next check waits no longer", async () => {
  jest.useFakeTimers();
  let execute: () => Promise<never> = () => Promise.reject(new Error("no"));
  const db = new Proxy({}, { get: () => () => execute() }) as Deps["db"];
  const databaseAnswer = { at: performance.now() };
  const log = createLog("error", { write: () => {} });
  const check = new ReadinessCheck({ db, keys: {} as Deps["keys"], log, databaseAnswer });
  await check.now();
  execute = () => new Promise(() => {});
  const waited: number[] = [];
  // As the balancer does, beginning when the database has answered for the last time.
  for (let count = 0; count < 3; count += 1) {
    const began = performance.now();
    let isDone = false;
    const done = check.now().then(() => {
      isDone = true;
    });
    for (let tick = 0; tick < 40 && !isDone; tick += 1) {
      jest.advanceTimersByTime(100);
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    }
    await done;
    waited.push(performance.now() - began);
    jest.advanceTimersByTime(Math.max(0, 2000 - waited.at(-1)!));
  }
  expect(waited).toEqual([500, 500, 100]);
});
