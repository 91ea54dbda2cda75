import { beforeEach, describe, expect, test } from "bun:test";
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import { configHome } from "../../tests/support/cli/io.ts";
import { withEntry } from "./credentials.ts";
import { readCredentials, updateCredentials } from "./credentials_file.ts";
import { credentialsPath } from "./private_file.ts";

let env: { XDG_CONFIG_HOME: string };
let path: string;
let directory: string;

beforeEach(() => {
  env = { XDG_CONFIG_HOME: configHome() };
  path = credentialsPath(env);
  directory = dirname(path);
});

const store = (base = "http://a.example", user = "alice@example.com") =>
  updateCredentials(env, (all) => withEntry(all, base, { user }));
const mode = (file: string) => (fs.statSync(file).mode & 0o777).toString(8);

test("the path of the file", () => {
  expect(credentialsPath({ XDG_CONFIG_HOME: "/x", HOME: "/h" })).toBe("/x/svc/credentials.json");
  expect(credentialsPath({ XDG_CONFIG_HOME: "relative", HOME: "/h" })).toBe(
    "/h/.config/svc/credentials.json",
  );
  expect(credentialsPath({ HOME: "/h" })).toBe("/h/.config/svc/credentials.json");
});

test("without a file, there are no credentials, and nothing is created", () => {
  expect(readCredentials(env)).toEqual({ servers: {} });
  expect(fs.existsSync(directory)).toBeFalse();
});

test("the file and its directory are readable only by the owner, without leftovers", () => {
  const umask = process.umask(0);
  store();
  process.umask(umask);
  expect([mode(path), mode(directory)]).toEqual(["600", "700"]);
  expect(readCredentials(env)).toEqual({
    last: "http://a.example",
    servers: { "http://a.example": { user: "alice@example.com" } },
  });
  expect(fs.readdirSync(directory).sort()).toEqual(["credentials.json", "credentials.lock"]);
});

test("the file is replaced, never written in place", () => {
  store();
  const before = fs.openSync(path, "r");
  const inode = fs.statSync(path).ino;
  store("http://b.example");
  expect(fs.statSync(path).ino).not.toBe(inode);
  expect(fs.readFileSync(before, "utf8")).not.toContain("b.example");
  fs.closeSync(before);
});

test("removes temporary files of a killed writer", () => {
  store();
  fs.writeFileSync(join(directory, ".credentials.json.dead.tmp"), "token");
  store();
  expect(fs.readdirSync(directory).sort()).toEqual(["credentials.json", "credentials.lock"]);
});

test("a failed change leaves the file unchanged", () => {
  store();
  const before = fs.readFileSync(path, "utf8");
  const fail = () => {
    throw new Error("no");
  };
  expect(() => updateCredentials(env, fail)).toThrow("no");
  expect(fs.readFileSync(path, "utf8")).toBe(before);
  expect(fs.readdirSync(directory).sort()).toEqual(["credentials.json", "credentials.lock"]);
  store("http://b.example");
});

test("if the file cannot be replaced, no part of the new one is left", () => {
  const change = () => {
    // Created between the check and the rename, which then fails.
    fs.mkdirSync(path);
    return withEntry({ servers: {} }, "http://a.example", { user: "alice@example.com" });
  };
  expect(() => updateCredentials(env, change)).toThrow(`cannot write ${path} (EISDIR)`);
  expect(fs.readdirSync(directory).sort()).toEqual(["credentials.json", "credentials.lock"]);
});

describe("refuses with the fix, and leaves unchanged,", () => {
  const refused = (message: string, file = path) => {
    const state = () =>
      fs.statSync(file).isFile() ? [mode(file), fs.readFileSync(file, "utf8")] : mode(file);
    const before = state();
    for (const use of [() => void readCredentials(env), () => store()]) {
      expect(use).toThrow(new ConfigurationError([message]));
    }
    expect(state()).toEqual(before);
  };

  test("a corrupt file", () => {
    store();
    fs.writeFileSync(path, '{"version":1,"serv');
    refused(`${path} is corrupt; to fix it: repair it, or move it away and run svc login`);
  });

  test.each([0o640, 0o604, 0o620, 0o666])("a file of mode %o", (bits) => {
    store();
    fs.chmodSync(path, bits);
    refused(`${path} can be read or written by others; to fix it: chmod 600 ${path}`);
  });

  test("a file that its owner cannot read", () => {
    store();
    fs.chmodSync(path, 0o200);
    for (const use of [() => void readCredentials(env), () => store()]) {
      expect(use).toThrow(new ConfigurationError([`${path} cannot be read; to fix it: chmod 600 ${path}`]));
    }
    expect(mode(path)).toBe("200");
  });

  test.each([0o777, 0o770, 0o722])("a directory of mode %o", (bits) => {
    store();
    fs.chmodSync(directory, bits);
    refused(`${directory} can be written by others; to fix it: chmod 700 ${directory}`);
    expect(mode(directory)).toBe(bits.toString(8));
  });

  test("a directory in place of the file", () => {
    fs.mkdirSync(path, { recursive: true });
    refused(`${path} is not a file; to fix it: move it away`);
  });

  test("a file in place of the directory", () => {
    fs.writeFileSync(directory, "");
    expect(() => readCredentials(env)).toThrow(`${directory} is not a directory; to fix it: move it away`);
    expect(() => store()).toThrow(ConfigurationError);
  });

  test("a file or directory of another user", () => {
    // Only root can change the owner of a file; other users test with a file of root.
    if (process.getuid?.() === 0) {
      store();
      fs.chownSync(path, 1234, 1234);
      refused(`${path} belongs to another user; to fix it: move it away`);
      fs.chownSync(directory, 1234, 1234);
      refused(`${directory} belongs to another user; to fix it: move it away`);
    } else {
      fs.mkdirSync(directory, { mode: 0o700 });
      fs.symlinkSync("/etc/passwd", path);
      expect(() => readCredentials(env)).toThrow("belongs to another user; to fix it: move it away");
    }
  });

  test("a symbolic link to nothing", () => {
    fs.mkdirSync(directory, { mode: 0o700 });
    fs.symlinkSync("/nonexistent/credentials.json", path);
    expect(() => readCredentials(env)).toThrow(
      `${path} is a symbolic link to nothing; to fix it: rm ${path}`,
    );
    expect(() => store()).toThrow(ConfigurationError);
    expect(fs.readlinkSync(path)).toBe("/nonexistent/credentials.json");
  });

  test("a symbolic link into a directory that others can write", () => {
    const open = join(env.XDG_CONFIG_HOME, "open");
    fs.mkdirSync(open);
    fs.chmodSync(open, 0o777);
    fs.writeFileSync(join(open, "mine.json"), '{"version":1,"servers":{}}', { mode: 0o600 });
    fs.mkdirSync(directory, { mode: 0o700 });
    fs.symlinkSync(join(open, "mine.json"), path);
    refused(`${open} can be written by others; to fix it: chmod 700 ${open}`, join(open, "mine.json"));
  });
});

test("keeps a symbolic link, and replaces its target", () => {
  const dotfiles = join(env.XDG_CONFIG_HOME, "dotfiles");
  fs.mkdirSync(dotfiles, { mode: 0o700 });
  const target = join(dotfiles, "svc.json");
  fs.writeFileSync(target, '{"version":1,"servers":{}}', { mode: 0o600 });
  fs.mkdirSync(directory, { mode: 0o700 });
  fs.symlinkSync(target, path);
  store();
  expect(fs.lstatSync(path).isSymbolicLink()).toBeTrue();
  expect(fs.readFileSync(target, "utf8")).toContain("alice@example.com");
  expect(mode(target)).toBe("600");
});

test("eight concurrent sign-ins lose nothing", async () => {
  const script = join(env.XDG_CONFIG_HOME, "store.ts");
  const [file, entry] = ["credentials_file.ts", "credentials.ts"].map((name) => join(import.meta.dir, name));
  await Bun.write(
    script,
    `import { updateCredentials } from ${JSON.stringify(file)};
     import { withEntry } from ${JSON.stringify(entry)};
     for (let i = 0; i < 10; i++) {
       updateCredentials(process.env, (all) => withEntry(all, \`http://\${process.argv[2]}-\${i}.example\`, { user: "a" }));
     }`,
  );
  const children = Array.from({ length: 8 }, (_, i) =>
    Bun.spawn([process.execPath, script, `s${i}`], { env }),
  );
  expect(await Promise.all(children.map((child) => child.exited))).toEqual(children.map(() => 0));
  expect(Object.keys(readCredentials(env).servers)).toHaveLength(80);
});
