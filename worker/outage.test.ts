import { expect, test } from "bun:test";
import { createLog } from "../platform/log.ts";
import { Outage } from "./outage.ts";

const never = new AbortController().signal;

test("an outage is logged once when it begins and once when it ends, however many callers wait", async () => {
  const told: string[] = [];
  const outage = new Outage(createLog("info", { write: (line: string) => told.push(JSON.parse(line).msg) }));
  let away = true;
  const work = async () => {
    if (away) throw new Error("away");
    return "done";
  };
  const late = Promise.withResolvers<string>();
  const asks = [1, 2, 3].map(() => outage.retryUntilAvailable(work, never));
  // Started before the database was back and failed afterwards: not a new outage.
  let first = true;
  asks.push(outage.retryUntilAvailable(() => (first ? late.promise : work()), never));
  await Bun.sleep(250);
  away = false;
  expect(await Promise.all(asks.slice(0, 3))).toEqual(["done", "done", "done"]);
  first = false;
  late.reject(new Error("away"));
  expect(await asks[3]).toBe("done");
  expect(told).toEqual([
    "the database is unavailable: retrying until it answers",
    "the database answers again",
  ]);
});

test("each new reason is logged once: a closed connection, then why none can be opened", async () => {
  const told: string[] = [];
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line);
    told.push([msg, reason].filter(Boolean).join(": "));
  };
  const outage = new Outage(createLog("info", { write }));
  const codes = ["57P01", "57P01", "28P01", "57P01", "28P01"];
  const work = async () => {
    const code = codes.shift();
    if (code !== undefined) throw Object.assign(new Error("no"), { code });
  };
  await outage.retryUntilAvailable(work, never);
  expect(told).toEqual([
    "the database is unavailable: retrying until it answers: PostgreSQL closed the connection: run it again",
    "the database is still unavailable, for another reason: PostgreSQL refuses this user or password: see SVC_DATABASE_URL",
    "the database answers again",
  ]);
});

test("it stops waiting when the caller aborts", async () => {
  const stop = new AbortController();
  const outage = new Outage(createLog("silent"));
  const asked = outage.retryUntilAvailable(async () => {
    stop.abort();
    throw new Error("away");
  }, stop.signal);
  expect(await asked).toBeUndefined();
});
