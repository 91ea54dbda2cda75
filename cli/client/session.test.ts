import { describe, expect, test } from "bun:test";
import { ConfigurationError, Unauthenticated } from "../../platform/errors.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { NOW, type TestIo, testIo } from "../../tests/support/cli/io.ts";
import { withEntry } from "./credentials.ts";
import { updateCredentials } from "./credentials_file.ts";
import { currentSession } from "./session.ts";

const base = "https://svc.example";
const tokenFor = (seconds: number) => fakeToken({ now: NOW.getTime(), seconds });

function stored(
  seconds: number,
  env: Record<string, string> = {},
  storage: "file" | "keychain" = "file",
): TestIo {
  const io = testIo({ env });
  const expires_at = new Date(NOW.getTime() + seconds * 1000).toISOString();
  const token = tokenFor(seconds);
  if (storage === "keychain") io.secrets = new Map([[base, token]]);
  const entry = { user: "alice@example.com", storage, expires_at, ...(storage === "file" ? { token } : {}) };
  updateCredentials(io.env, (all) => withEntry(all, base, entry));
  return io;
}

test.each(["file", "keychain"] as const)(
  "a token from the %s, for the server last signed in to",
  async (storage) => {
    expect(await currentSession(stored(60, {}, storage))).toMatchObject({
      server: { base },
      token: { token: tokenFor(60) },
      user: "alice@example.com",
      source: storage,
    });
  },
);

describe("not signed in", () => {
  const refused = async (io: TestIo, option: string | undefined, detail: string) => {
    await expect(currentSession({ ...io, server: option })).rejects.toEqual(new Unauthenticated(detail));
  };
  test("to any server", () =>
    refused(testIo(), undefined, "not signed in to http://127.0.0.1:8000; run svc login"));
  test("to that server", () =>
    refused(stored(60), "https://other.example", "not signed in to https://other.example; run svc login"));
  test("any more, from the second of its expiry on", () =>
    refused(stored(0), undefined, "the sign-in to https://svc.example has expired; run svc login"));
  test("with SVC_TOKEN, any more", () =>
    refused(
      testIo({ env: { SVC_TOKEN: tokenFor(0) } }),
      undefined,
      "the token in SVC_TOKEN has expired; set a new one",
    ));
});

test("SVC_TOKEN replaces a stored token, even without a readable credentials file", async () => {
  const SVC_TOKEN = tokenFor(99);
  expect(await currentSession(stored(60, { SVC_TOKEN }))).toMatchObject({
    server: { base },
    token: { token: SVC_TOKEN },
    source: "SVC_TOKEN",
  });
  const io = testIo({ env: { SVC_TOKEN, SVC_SERVER: base, XDG_CONFIG_HOME: "/proc/nothing" } });
  expect(await currentSession(io)).toMatchObject({ server: { base }, source: "SVC_TOKEN" });
});

test("an invalid SVC_TOKEN is reported, but neither shown nor sent", async () => {
  const io = testIo({ env: { SVC_TOKEN: "hunter2\r\nx: y" } });
  await expect(currentSession(io)).rejects.toEqual(
    new ConfigurationError(["SVC_TOKEN is not an access token (a JWT that expires)"]),
  );
});

test("warns about plain http", async () => {
  const io = testIo({ env: { SVC_TOKEN: tokenFor(60) } });
  await currentSession({ ...io, server: "http://svc.example" });
  expect(io.out.stderr).toStartWith("svc: warning: http://svc.example uses plain http");
});

test("a keychain that is gone", async () => {
  const io = stored(60, {}, "keychain");
  io.secrets = undefined;
  await expect(currentSession(io)).rejects.toThrow(
    "this machine has no keychain that svc can use; sign in without --keychain",
  );
});
