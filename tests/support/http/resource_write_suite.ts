import { expect, test } from "bun:test";
import type { ResourceCase, SuiteContext } from "./resource_suite.ts";

/** The part of `resourceSuite` for POST and PUT. */
export function writeSuite(resource: ResourceCase, context: () => SuiteContext): void {
  const { path, fields } = resource;
  test("POST returns 201 with the record, its location and its version", async () => {
    const { server, at, writer, next } = context();
    const whole = fields(next());
    const now = server.clock.now().toISOString();
    const { http, body, headers } = await writer.call("POST", path.slice(0, -1), whole);
    expect([http, body]).toEqual([
      201,
      {
        id: expect.any(Number),
        ...whole,
        ...resource.shown,
        version: 1,
        created_at: now,
        updated_at: now,
      },
    ]);
    expect(headers.get("location")).toBe(at(body.id));
    expect(headers.get("etag")).toBe('"1"');
    expect(await writer.call("GET", at(body.id))).toMatchObject({ http: 200, body });
    expect((await writer.call("GET", `${at(body.id)}/`)).body).toEqual(body);
  });

  test("POST may omit only fields with a default", async () => {
    const { writer, next } = context();
    const names = Object.keys(fields(0));
    const few = names.filter((name) => !resource.optional.includes(name));
    const whole = fields(next());
    const least = Object.fromEntries(few.map((name) => [name, whole[name]]));
    expect((await writer.call("POST", path, least)).http).toBe(201);
    for (const field of few) {
      const answer = await writer.call("POST", path, { ...fields(next()), [field]: undefined });
      expect(answer).toMatchObject({ http: 400, body: { field } });
    }
  });

  const text = resource.text;
  const wrong: ResourceCase["wrong"] = [
    ["an empty text", { [text]: "" }, text],
    ["a text of spaces", { [text]: " \t " }, text],
    ["NUL", { [text]: "secretly\0b" }, text],
    ["a lone surrogate", { [text]: "secretly\ud800" }, text],
    ["a number instead of a text", { [text]: 7 }, text],
    ["a text that is too long", { [text]: "a".repeat(resource.lines ? 20_001 : 501) }, text],
    ...(resource.lines ? [] : ([["two lines", { [text]: "secretly\nb" }, text]] as ResourceCase["wrong"])),
    ["an id", { id: 1 }, "id"],
    ...resource.wrong,
  ];
  test.each(wrong)("refuses %s, naming the field and not the value", async (_, change, field) => {
    const { admin, at, writer, next, create } = context();
    const record = await create();
    const { id } = record;
    const isShown = Object.keys(change).every((name) => name in record && !(name in fields(0)));
    for (const [method, to, more] of [
      ["POST", path, {}],
      ["PUT", at(id), { version: 1 }],
    ] as const) {
      // PUT ignores it, see below.
      if (method === "PUT" && isShown) continue;
      const answer = await writer.call(method, to, { ...fields(next()), ...change, ...more });
      expect([method, answer]).toMatchObject([method, { http: 400, body: { code: "invalid_input" } }]);
      expect(answer.body.field).toStartWith(field);
      expect(JSON.stringify(answer.body)).not.toContain("secretly");
    }
    expect((await admin.call("GET", at(id))).body.version).toBe(1);
  });

  test("PUT accepts the record of a GET, and ignores read-only fields", async () => {
    const { at, writer, create } = context();
    const { id } = await create();
    const shown = (await writer.call("GET", at(id))).body;
    const more = { id: 4711, created_at: "2001-01-01T00:00:00.000Z" };
    const { http, body } = await writer.call("PUT", at(id), { ...shown, ...more });
    expect([http, body]).toEqual([200, { ...shown, version: 2, updated_at: expect.any(String) }]);
    expect((await writer.call("PUT", at(id), { ...body, id: "x" })).body.field).toBe("id");
  });

  test("PUT replaces the given version, and increments it", async () => {
    const { server, at, writer, create, next } = context();
    const { id } = await create();
    const change = fields(next());
    server.clock.advance(1);
    const now = server.clock.now().toISOString();
    const { http, body, headers } = await writer.call("PUT", at(id), { ...change, version: 1 });
    expect([http, body]).toMatchObject([200, { ...change, id, version: 2, updated_at: now }]);
    expect(headers.get("etag")).toBe('"2"');
    expect((await writer.call("GET", at(id))).body).toEqual(body);
  });

  test("PUT requires all fields", async () => {
    const { at, writer, create, next } = context();
    const { id } = await create();
    for (const field of [...Object.keys(fields(0)), "version"]) {
      const change = { ...fields(next()), version: 1, [field]: undefined };
      expect([field, await writer.call("PUT", at(id), change)]).toMatchObject([
        field,
        { http: 400, body: { field } },
      ]);
    }
  });

  test("PUT of another version returns 409 and changes nothing", async () => {
    const { at, writer, create, next } = context();
    const before = await create();
    for (const version of [2, 99, 2_147_483_646]) {
      const answer = await writer.call("PUT", at(before.id), { ...fields(next()), version });
      expect(answer).toMatchObject({ http: 409, body: { code: "conflict" } });
      expect(answer.body.detail).toContain("version 1");
    }
    for (const version of [0, -1, 1.5, "1", null, 2 ** 31])
      expect((await writer.call("PUT", at(before.id), { ...fields(next()), version })).http).toBe(400);
    expect((await writer.call("GET", at(before.id))).body).toEqual(before);
  });

  test("one of twenty concurrent PUTs succeeds, and the others get 409", async () => {
    const { at, writer, create, next } = context();
    const { id } = await create();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => writer.call("PUT", at(id), { ...fields(next()), version: 1 })),
    );
    const https = answers.map(({ http }) => http).sort();
    expect(https).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
    const first = answers.find(({ http }) => http === 200);
    expect((await writer.call("GET", at(id))).body).toEqual(first?.body);
  });

  const { taken } = resource;
  if (taken) {
    test("unique fields stay unique under concurrent requests", async () => {
      const { at, writer, create, next } = context();
      const whole = fields(next());
      const same = Object.fromEntries(taken.fields.map((field) => [field, whole[field]]));
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => writer.call("POST", path, { ...fields(next()), ...same })),
      );
      expect(answers.map(({ http }) => http).sort()).toEqual([201, ...Array.from({ length: 9 }, () => 409)]);
      const refused = answers.find(({ http }) => http === 409);
      expect(refused?.body).toMatchObject({ code: "conflict", detail: taken.detail });
      const { id } = await create();
      const put = await writer.call("PUT", at(id), { ...fields(next()), ...same, version: 1 });
      expect(put).toMatchObject({ http: 409, body: { detail: taken.detail } });
    });
  }
}
