import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectionOptions } from "node:tls";
import { readAddress } from "./address.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-address-"));
const file = join(directory, "root.crt");
writeFileSync(file, "the authority");
afterAll(() => rmSync(directory, { recursive: true }));

const plain = "postgres://u:p%40@h:5/n%20m";
const read = (parameters: string) => readAddress(`${plain}?${parameters}`);
const encryption = (parameters: string) => read(parameters).ssl as ConnectionOptions | undefined;

test("an address without parameters is unchanged", () => {
  expect(readAddress(plain)).toEqual({
    url: plain,
    place: { host: "h", port: 5 },
    ssl: undefined,
    hasTimeout: false,
  });
});

test("parameters that PostgreSQL does not accept are removed, and the others stay", () => {
  expect(read("channel_binding=prefer&sslmode=require&keepalives=0").url).toBe(`${plain}?sslmode=require`);
  expect(read("target_session_attrs=any&work_mem=1MB").url).toBe(`${plain}?work_mem=1MB`);
  expect(read("target_session_attrs=primary").url).toBe(`${plain}?target_session_attrs=primary`);
  expect(read("connect_timeout=3")).toMatchObject({ url: `${plain}?connect_timeout=3`, hasTimeout: true });
});

describe("certificates", () => {
  test("are verified if an authority is given, and against the host name only on request", () => {
    expect(encryption(`sslmode=verify-full&sslrootcert=${file}`)).toEqual({
      ca: Buffer.from("the authority"),
    });
    for (const mode of ["sslmode=verify-ca&", "sslmode=require&", ""]) {
      const found = encryption(`${mode}sslrootcert=${file}`);
      expect(found?.checkServerIdentity).toBeFunction();
      expect(found?.rejectUnauthorized).toBeUndefined();
    }
    expect(encryption("sslrootcert=system")).toBe("verify-full" as never);
  });

  test("are not verified unless encryption is required", () => {
    for (const mode of ["disable", "allow", "prefer"]) {
      expect(read(`sslmode=${mode}&sslrootcert=${file}`)).toMatchObject({
        ssl: undefined,
        url: `${plain}?sslmode=${mode}`,
      });
    }
    expect(encryption("sslmode=require")).toBeUndefined();
  });

  test("of the client are sent, but alone they do not verify the server", () => {
    expect(encryption(`sslmode=require&sslcert=${file}&sslkey=${file}`)).toEqual({
      cert: Buffer.from("the authority"),
      key: Buffer.from("the authority"),
      rejectUnauthorized: false,
    });
    const verified = encryption(`sslmode=verify-full&sslcert=${file}`);
    expect(verified?.rejectUnauthorized).toBeUndefined();
  });

  test("of the client are also sent to a server verified by the system's authorities", async () => {
    const parameters = `sslrootcert=system&sslcert=${file}&sslkey=${file}`;
    const [cert, key] = [Buffer.from("the authority"), Buffer.from("the authority")];
    expect(read(parameters)).toEqual({
      url: plain,
      place: { host: "h", port: 5 },
      hasTimeout: false,
      ssl: { cert, key },
    });
  });
});
