import { afterAll, beforeAll, expect, test } from "bun:test";
import { approvingBrowser } from "../../tests/support/cli/certificates.ts";
import { cliUser } from "../../tests/support/cli/incident_cli.ts";
import { spawnSvc } from "../../tests/support/cli/process.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { type MtlsServer, startMtlsServer } from "../../tests/support/http/mtls.ts";

// `svc --certificate` as a process, with the server's authority from the environment.

let mtls: MtlsServer;
beforeAll(async () => {
  mtls = await startMtlsServer();
});
afterAll(() => mtls[Symbol.asyncDispose]());

test("a process trusts NODE_EXTRA_CA_CERTS at the address for certificates, and learns of a revocation", async () => {
  const { server } = mtls;
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  const user = (await cliUser(server, "alice@example.com")).with({
    fetch: (url, init) => fetch(url, init),
    openBrowser: approvingBrowser,
    sleep: () => Bun.sleep(20),
  });
  delete user.env.SVC_TOKEN;
  expect(await user.svc("login", "alice@example.com", "--browser", "--certificate")).toMatchObject({
    code: 0,
  });
  const env = { ...user.env, NODE_EXTRA_CA_CERTS: mtls.authorityFile };
  const known = await spawnSvc(["--certificate", "whoami", "--json"], env).finished;
  expect(known).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(known.stdout)).toMatchObject({ user: "alice@example.com" });
  const unknown = await spawnSvc(["--certificate", "whoami"], user.env).finished;
  expect(unknown).toMatchObject({ code: 1, stdout: "" });
  expect(unknown.stderr).toContain(`the certificate of ${mtls.url} is not trusted`);

  // Revoked by an admin while a command follows a stream.
  await insertIncident(server.db, server.clock.now());
  const watching = spawnSvc(["--certificate", "incident", "watch", "INC-1", "--json"], env);
  await watching.prints('"kind"');
  const admin = await cliUser(server, "root@example.com", ["admin"]);
  const revoke = ["certificates", "revoke", "--user", "alice@example.com"];
  expect(await admin.with({ fetch: (url, init) => fetch(url, init) }).svc(...revoke)).toMatchObject({
    code: 0,
  });
  const ended = await watching.finished;
  expect([ended.code, ended.stderr]).toEqual([4, expect.stringContaining("has been revoked")]);
});
