import { expect, test } from "bun:test";
import { fakeToken } from "../../../tests/support/cli/fake_server.ts";
import { spawnSvc } from "../../../tests/support/cli/process.ts";

test("reconcile --revoke sends no more names at once than the server accepts", async () => {
  const orphans = Array.from({ length: 12_000 }, (_, at) => `svc_${at}`);
  const sent: number[] = [];
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (!request.url.endsWith("/reconcile")) return Response.json({ slug: "shop" });
      if (request.method === "GET") return Response.json({ orphans, missing: ["svc_a"] });
      const { names } = (await request.json()) as { names: string[] };
      sent.push(names.length);
      return Response.json({ revoking: names });
    },
  });
  const env = { SVC_SERVER: server.url.origin, SVC_TOKEN: fakeToken() };
  const { code, stdout } = await spawnSvc(["access", "reconcile", "shop", "--revoke"], env).finished;
  expect([code, sent]).toEqual([0, [5000, 5000, 2001]]);
  expect(stdout).toEndWith("Revoking 12001: svc access leases --role shop\n");
});
