import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { signInToken, startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let authorization: string;
beforeAll(async () => {
  server = await startTestServer();
  authorization = `Bearer ${await signInToken(server)}`;
});
afterAll(() => server[Symbol.asyncDispose]());

const ask = (method: string, path: string) => server.fetch(path, { method, headers: { authorization } });

/** Each path of the application, with its parameters filled in, and the methods that have a route. */
function paths(): [path: string, methods: string[]][] {
  const routes = server.app.routes.filter(({ method }) => method !== "ALL");
  const all = Map.groupBy(routes, ({ path }) => path.replace(/\/$/, ""));
  return [...all].map(([path, same]) => [
    path.replace("challenge:validator", "challenge_validator").replaceAll(/:\w+/g, "999999999"),
    same.map(({ method }) => method),
  ]);
}

/** Where a GET has side effects, so that there is no HEAD. */
const acts = /^\/(noauth|sign_in|approve|challenge_validator)\/|^\/app\/sign_in\/?$/;

describe("every address", () => {
  test("answers OPTIONS with its methods, and 405 with the same list to any other method", async () => {
    expect(paths().length).toBeGreaterThan(40);
    for (const [path, methods] of paths()) {
      const head = methods.includes("GET") && !acts.test(path) ? ["HEAD"] : [];
      const allowed = [...methods, "OPTIONS", ...head].sort();
      for (const address of [path, `${path}/`]) {
        const options = await ask("OPTIONS", address);
        expect([address, options.status, await options.text()]).toEqual([address, 204, ""]);
        expect(options.headers.get("allow")).toBe(allowed.join(", "));
      }
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"]) {
        if (allowed.includes(method)) continue;
        const refused = await ask(method, path);
        expect([method, path, refused.status]).toEqual([method, path, 405]);
        expect(refused.headers.get("allow")).toBe(allowed.join(", "));
        expect(refused.headers.get("x-request-id")).toBeString();
      }
    }
  });

  test("answers HEAD like GET without the body, unless GET has side effects", async () => {
    const facts = ({ status, headers }: Response) => [
      status,
      Object.fromEntries([...headers].filter(([name]) => name !== "date" && name !== "x-request-id")),
    ];
    for (const [path, methods] of paths()) {
      if (!methods.includes("GET")) continue;
      const head = await ask("HEAD", path);
      expect(await head.text()).toBe("");
      expect(head.headers.get("date")).toMatch(/^\w{3}, .* GMT$/);
      if (acts.test(path)) {
        expect([path, head.status >= 400]).toEqual([path, true]);
        continue;
      }
      const get = await ask("GET", path);
      if (get.headers.get("content-type")?.startsWith("text/event-stream")) {
        await get.body!.cancel();
        for (const { headers } of [head, get])
          for (const name of ["content-length", "transfer-encoding"]) headers.delete(name);
        expect([path, ...facts(head)]).toEqual([path, ...facts(get)]);
        continue;
      }
      expect([path, ...facts(head)]).toEqual([path, ...facts(get)]);
      if (head.status !== 303) expect(head.headers.get("content-length")).toMatch(/^[1-9]/);
    }
  });

  test("explains a 405 in the format of its reader", async () => {
    expect(await (await ask("POST", "/whoami")).json()).toMatchObject({
      status: 405,
      code: "method_not_allowed",
      detail: "This address does not support that method",
    });
    const page = await ask("PUT", "/sign_in/callback");
    expect([page.status, page.headers.get("allow")]).toEqual([405, "GET, OPTIONS"]);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  });
});

test("an unknown path is 404 for any method", async () => {
  for (const method of ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE"]) {
    for (const path of [
      "/nothing",
      "/nothing/else",
      "/incidents/1/2/3",
      "/noauth/v2/x",
      "/noauth/*",
      "/challengex/y",
    ]) {
      const { status, headers } = await ask(method, path);
      expect([method, path, status, headers.get("allow")]).toEqual([method, path, 404, null]);
    }
  }
});

test("a record that does not exist keeps its own 404", async () => {
  const { status, headers } = await ask("GET", "/incidents/999999999");
  expect([status, headers.get("allow")]).toEqual([404, null]);
});

test("no answer allows another origin", async () => {
  for (const [path, methods] of paths()) {
    for (const method of [...methods, "OPTIONS"]) {
      const { headers } = await server.fetch(path, {
        method,
        headers: {
          authorization,
          origin: "https://evil.example",
          "access-control-request-method": "GET",
          "access-control-request-headers": "authorization",
        },
      });
      expect([path, [...headers.keys()].filter((name) => name.startsWith("access-control-"))]).toEqual([
        path,
        [],
      ]);
    }
  }
});
