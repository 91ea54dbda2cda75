import { expect, test } from "bun:test";
import { serialIn, useCertificates, whoami } from "../../tests/support/cli/certificates.ts";
import { cliUser, wideTerminal } from "../../tests/support/cli/incident_cli.ts";
import type { TestServer } from "../../tests/support/http/server.ts";

// `svc certificates list` and `revoke`.

let server: TestServer;
const { certified } = useCertificates((given) => {
  ({ server } = given);
});

test("the list fits a terminal of 40 columns, and has whole serial numbers", async () => {
  const user = await certified();
  const stdout = wideTerminal(40);
  expect((await user.with({ stdout }).svc("certificates", "list")).code).toBe(0);
  const lines = stdout.text.trimEnd().split("\n");
  for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(40);
  expect(lines[0]).toMatch(/^Serial +State$/);
  expect(lines.join("\n")).toMatch(new RegExp(`^${serialIn(user.files.certificate)} +Valid$`, "m"));
  const wide = wideTerminal(200);
  await user.with({ stdout: wide }).svc("certificates", "list");
  expect(wide.text).toMatch(/^Serial +User +State +Created +Expires +Renewable Until\n/);
});

test("users list and revoke their certificates, and admins those of others", async () => {
  const user = await certified();
  const serial = serialIn(user.files.certificate);
  const bob = await cliUser(server, "bob@example.com");
  expect((await bob.svc("certificates", "list")).stdout).not.toContain(serial);
  expect(await bob.svc("certificates", "revoke", serial)).toMatchObject({ code: 1, stdout: "" });
  expect((await user.svc("certificates", "list")).stdout).toMatch(
    new RegExp(`^${serial} +alice@example.com +Valid`, "m"),
  );
  const root = await cliUser(server, "root@example.com", ["admin"]);
  expect((await root.svc("certificates", "list")).stdout).toContain(serial);
  expect((await root.svc("certificates", "revoke", "--user", "alice@example.com")).stdout).toMatch(
    /^Revoked \d+\n$/,
  );
  expect(await whoami(user)).toEqual([
    4,
    expect.stringContaining(
      "does not accept this certificate (the certificate has been revoked); run svc login --certificate",
    ),
  ]);
  expect((await root.svc("certificates", "list", "--all")).stdout).toMatch(new RegExp(`${serial} .*Revoked`));
  for (const [words, code] of [
    [["revoke"], 2],
    [["revoke", "xyz"], 2],
    [["revoke", "ff"], 1],
    [["revoke", serial, "--user", "alice@example.com"], 2],
  ] as const)
    expect([words, (await root.svc("certificates", ...words)).code]).toEqual([words, code]);
});

test("a certificate revokes itself and its predecessor after all others", async () => {
  const user = await certified();
  const { certificate: file } = user.files;
  const replaced = serialIn(file);
  server.clock.advance(19 * 3600);
  await whoami(user);
  const own = serialIn(file);
  const other = serialIn((await certified()).files.certificate);
  expect(own).not.toBe(replaced);
  const { code, stdout, stderr } = await user.svc(
    "--certificate",
    "certificates",
    "revoke",
    "--json",
    own,
    replaced,
    other,
  );
  expect([code, stderr]).toEqual([0, ""]);
  expect(JSON.parse(stdout)).toEqual({ revoked: [other, own, replaced] });
  const admin = await cliUser(server, "root@example.com", ["admin"]);
  const { stdout: left } = await admin.svc("certificates", "list", "--user", "alice@example.com");
  for (const serial of [own, replaced, other]) expect(left).not.toContain(serial);
});
