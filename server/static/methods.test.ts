import { expect, test } from "bun:test";
import { useFrontEnd } from "../../tests/support/http/front_end_server.ts";
import { startTestServer } from "../../tests/support/http/server.ts";

const { server } = useFrontEnd();

const accept = "text/html,application/xhtml+xml,*/*;q=0.8";

test("a file and its fallbacks accept GET and HEAD; other methods get 405 with the list", async () => {
  const paths = [
    "/",
    "/logo.png",
    "/logo-too.png",
    "/assets/index-C9dQ2LpZ.js",
    "/guide",
    "/guide/",
    "/some/where",
  ];
  for (const path of [...paths, "/.well-known/security.txt"]) {
    const options = await server().fetch(path, { method: "OPTIONS", headers: { accept } });
    expect([path, options.status, await options.text()]).toEqual([path, 204, ""]);
    expect(options.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "TRACE"]) {
      const body = method === "TRACE" ? undefined : "{";
      const headers = { accept, "content-type": "application/json" };
      const refused = await server().fetch(path, { method, headers, body });
      expect([method, path, refused.status]).toEqual([method, path, 405]);
      expect(refused.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
    }
  }
});

test("paths without a file and API paths answer methods as without a front end", async () => {
  await using plain = await startTestServer();
  const paths = [
    "/*",
    "/gone.png",
    "/.env",
    "/link.txt",
    "/incidents/new.html",
    "/noauth/x",
    "/incidents/1",
    "/whoami",
  ];
  for (const path of [...paths, "/healthcheck", "/.well-known/jwks.json", "/challenge_validator/x"]) {
    for (const method of ["HEAD", "OPTIONS", "POST", "PUT", "DELETE"]) {
      const facts = ({ status, headers }: Response) => [method, path, status, headers.get("allow")];
      const body = method === "HEAD" ? undefined : "{";
      const init = { method, headers: { "content-type": "application/json" }, body };
      expect(facts(await server().fetch(path, init))).toEqual(facts(await plain.fetch(path, init)));
    }
  }
});
