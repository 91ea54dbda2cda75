import { afterAll, beforeAll, expect, test } from "bun:test";
import { approvingBrowser } from "../../tests/support/cli/certificates.ts";
import { cliUser } from "../../tests/support/cli/incident_cli.ts";
import { configHome } from "../../tests/support/cli/io.ts";
import { spawnSvc } from "../../tests/support/cli/process.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { type MtlsServer, startMtlsServer } from "../../tests/support/http/mtls.ts";
import { findFaketime } from "../../tests/support/programs.ts";

// `svc --certificate` as a process, with the server's authority from the environment.

let mtls: MtlsServer;
beforeAll(async () => {
  mtls = await startMtlsServer();
  await insertIncident(mtls.server.db, mtls.server.clock.now());
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

test.each(["-3h", "+400d"])("a clock of the machine that is wrong by %s does not matter", async (wrongBy) => {
  const { server } = mtls;
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  const library = findFaketime();
  if (library === undefined) throw new Error("libfaketime is not installed: apt-get install libfaketime");
  const env = {
    XDG_CONFIG_HOME: configHome(),
    SVC_SERVER: server.url,
    NODE_EXTRA_CA_CERTS: mtls.authorityFile,
    LD_PRELOAD: library,
    FAKETIME: wrongBy,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
  server.issuer.user = "alice@example.com";
  const signingIn = spawnSvc(
    ["login", "alice", "--no-browser", ...(wrongBy === "+400d" ? [] : ["--certificate"])],
    env,
  );
  await signingIn.says("Waiting for your approval");
  const [challengeUrl] = /http:\S+\/challenge_validator\/\S+/.exec(signingIn.said())!;
  await approvingBrowser(challengeUrl, {});
  const { code, stderr } = await signingIn.finished;
  expect([code, stderr]).toEqual([0, expect.stringContaining("The clock of this machine is ")]);
  const ok = async (...words: string[]) => {
    const { code, stdout, stderr } = await spawnSvc(words, env).finished;
    expect([words, code, stderr]).toEqual([words, 0, expect.not.stringContaining("svc:")]);
    return stdout;
  };
  await ok("whoami");
  await ok("token");
  const noted = JSON.parse(await ok("incident", "note", "INC-1", "Text", "--at", "5m", "--json"));
  expect(Math.abs(Date.now() - 300_000 - Date.parse(noted.at))).toBeLessThan(60_000);
  // TLS needs a clock that is within the server's certificate.
  if (wrongBy !== "+400d") await ok("--certificate", "whoami");
  expect(await ok("login")).toContain("Already signed in");
  expect(await ok("logout")).toContain("Signed out");
});
