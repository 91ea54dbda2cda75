import { expect, test } from "bun:test";
import { createRegistry } from "../../core/plugin/registry.ts";
import { builtinPlugins } from "../../plugins/builtin.ts";
import { fakeTerm } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer } from "../../tests/support/http/server.ts";

test("GET /plugins/ lists all plugins in order, with those in use, and no configuration", async () => {
  const serves = fakeTerm({}, { slug: "term-source" });
  await using server = await startTestServer({}, pluginsOf(serves));
  const member = await personOf(server, "carol@example.com");
  const { http, body } = await member.call("GET", "/plugins");
  const { all } = createRegistry([{ origin: "svc", exported: builtinPlugins, builtin: true }]);
  expect([http, body]).toEqual([
    200,
    {
      items: all.map(({ title, slug, version, type, author, description }) => ({
        title,
        slug,
        version,
        type,
        author,
        description,
        chosen: slug === "term-source",
      })),
      next_cursor: null,
    },
  ]);
  expect((await member.call("GET", "/plugins/")).body).toEqual(body);
  expect((await (await personOf(server)).call("GET", "/plugins/")).http).toBe(401);
});
