import { expect, test } from "bun:test";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDirectory } from "../../tests/support/database/backup.ts";
import { findTool, missingTool } from "./tools.ts";

test("finds the tool of the server's major version, in the PATH or where packages put it", async () => {
  await using directory = await temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  const tool = async (name: string, version: string) => {
    await mkdir(at(name));
    await Bun.write(at(`${name}/pg_dump`), `#!/bin/sh\necho "${version}"\n`);
    await chmod(at(`${name}/pg_dump`), 0o755);
  };
  await tool("old", "pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)");
  await tool("beta", "pg_dump (PostgreSQL) 19beta1");
  await tool("right", "pg_dump (PostgreSQL) 18.4");
  await tool("odd", "something else");
  await mkdir(at("empty"));
  await mkdir(at("plain"));
  await Bun.write(at("plain/pg_dump"), "not executable");
  const server = { host: "db.example.com", port: 5432 };
  const search = (path: string, packaged: string[] = []) =>
    findTool("pg_dump", 18, { server, env: { PATH: path }, directoriesOf: () => packaged });
  const path = (...names: string[]) => names.map(at).join(":");
  expect(await search(path("empty", "old", "right"))).toEqual({ tool: { path: at("right/pg_dump") } });
  expect(await search(path("old"), [at("right")])).toEqual({ tool: { path: at("right/pg_dump") } });
  expect(await search(path("empty", "odd", "plain", "nowhere"))).toEqual({ others: [] });
  expect(await search("")).toEqual({ others: [] });
  expect(await search(path("old", "beta"))).toEqual({ others: ["15.18", "19beta1"] });
  // An attacker who can write to the working directory must not choose the program.
  expect(await search(".:bin")).toEqual({ others: [] });
});

test("a missing tool gives an error with the command to install it", () => {
  expect(missingTool("pg_dump", 18, ["15.18"]).detail).toBe(
    "The server is PostgreSQL 18 and pg_dump here is 15.18: install the tools of version 18 (apt-get install postgresql-client-18), or dump with --format portable, which needs none",
  );
  expect(missingTool("pg_restore", 17, []).detail).toBe(
    "The server is PostgreSQL 17 and there is no pg_restore here: install the tools of version 17 (apt-get install postgresql-client-17)",
  );
});
