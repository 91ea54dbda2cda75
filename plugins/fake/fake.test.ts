import { describe, expect, test } from "bun:test";
import { callPlugin } from "../../core/plugin/call.ts";
import { type PluginType, pluginMethods, pluginTypes } from "../../core/plugin/methods.ts";
import * as fakes from "./fakes.ts";
import { pluginsOf } from "./plugins.ts";

const all = Object.values(fakes).map((make) => make());

test("there is a fake of each type, with all of its methods", () => {
  const types = Map.groupBy(all, ({ plugin }) => plugin.type as PluginType);
  expect([...types.keys()].sort()).toEqual([...pluginTypes].sort());
  for (const [type, ofType] of types) {
    const methods = new Set(ofType.flatMap(({ plugin }) => Object.keys(plugin.methods)));
    expect([...methods].sort()).toEqual(Object.keys(pluginMethods[type]).sort());
  }
});

describe("a call", () => {
  test("fails both the caller and the test if it is unexpected", async () => {
    const fake = fakes.fakeTerm();
    const plugins = pluginsOf(fakes.fakeDocument(), fake);
    expect(() => plugins.assertExpected()).not.toThrow();
    expect(await callPlugin(fake.plugin, "list", {})).toMatchObject({ ok: false, reason: "failed" });
    expect(() => fake.assertExpected()).toThrow("unexpected calls: list");
    expect(() => plugins.assertExpected()).toThrow("unexpected calls: list");
    expect(() => {
      using disposed = plugins;
      return disposed;
    }).toThrow("unexpected calls: list");
  });

  test("gets the scripted answers in turn, and is unexpected after the last one", async () => {
    const person = { email: "a@example.com" };
    const fake = fakes.fakeParticipant({ onCall: [() => person, () => null] });
    const call = { service: { id: 1, name: "Storage" }, at: "2026-11-20T12:00:00Z" };
    const ask = () => callPlugin(fake.plugin, "onCall", call, { key: "k" });
    expect(await ask()).toEqual({ ok: true, value: person });
    expect(await ask()).toEqual({ ok: true, value: null });
    fake.assertExpected();
    expect(await ask()).toMatchObject({ ok: false });
    expect(() => fake.assertExpected()).toThrow();
    expect(fake.to("onCall").map(({ key, service }) => [key, service.id])).toEqual([
      ["k", 1],
      ["k", 1],
      ["k", 1],
    ]);
  });

  test("gets its answer from a function each time", async () => {
    using fake = fakes.fakeTerm({ list: () => [] });
    expect(await callPlugin(fake.plugin, "list", {})).toEqual({ ok: true, value: [] });
    expect(await callPlugin(fake.plugin, "list", {})).toEqual({ ok: true, value: [] });
    expect(fake.calls).toHaveLength(2);
  });
});

test("plugins are found by type and slug, in their order", () => {
  const one = fakes.fakeConversation({}, { slug: "one" });
  const two = fakes.fakeConversation({}, { slug: "two" });
  const plugins = pluginsOf(one, fakes.fakeTerm(), two);
  expect(plugins.ofType("conversation").map(({ slug }) => slug)).toEqual(["one", "two"]);
  expect(plugins.find("conversation", "two")).toBe(two.plugin);
  expect(plugins.find("term", "two")).toBeUndefined();
});
