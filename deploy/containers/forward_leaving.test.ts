import { expect, test } from "bun:test";
import { inOrder, updateLeaving } from "./forward.ts";

test("a stopping server is known until it reports otherwise, is replaced or is gone", async () => {
  let status = "ok";
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: { "/health": () => Response.json({ status }, { status: status === "ok" ? 200 : 503 }) },
    fetch: () => new Response("no JSON"),
  });
  const leaving = new Set<string>();
  const ask = async (said: string, path = "/health", addresses = ["127.0.0.1"]) => {
    status = said;
    await updateLeaving(addresses, { port: server.port!, path }, leaving);
    return [...leaving];
  };
  expect(await ask("ok")).toEqual([]);
  expect(await ask("leaving")).toEqual(["127.0.0.1"]);
  // An answer that is not understood changes nothing.
  expect(await ask("leaving", "/elsewhere")).toEqual(["127.0.0.1"]);
  expect(await ask("unavailable")).toEqual([]);
  expect(await ask("leaving")).toEqual(["127.0.0.1"]);
  expect(await ask("leaving", "/health", [])).toEqual([]);
});

test("servers take turns, and stopping ones come last", () => {
  const addresses = ["a", "b", "c"];
  const orders = (leaving: string[]) =>
    [0, 1, 2, 3].map((n) => inOrder(addresses, new Set(leaving), n).join(""));
  expect(orders([])).toEqual(["abc", "bca", "cab", "abc"]);
  expect(orders(["a"])).toEqual(["bca", "cba", "bca", "cba"]);
  expect(orders(["a", "b", "c"])).toEqual(["abc", "bca", "cab", "abc"]);
  expect(inOrder([], new Set(["a"]), 5)).toEqual([]);
});
