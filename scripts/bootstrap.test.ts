import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen } from "../tests/support/listen.ts";
import { whyInstall } from "./bootstrap/install.mjs";
import { withLock } from "./bootstrap/lock.mjs";
import { findBun } from "./bootstrap/run.mjs";

const root = join(import.meta.dir, "..");
const stub = "#!/bin/sh\necho 'run the post-install script' >&2; exit 1\n";
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-bootstrap-test-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** A clone with one script, `say.ts`, and a lock file with one package, "thing" 1.0.0. Nothing is installed. */
async function makeClone(): Promise<string> {
  const clone = join(directory, crypto.randomUUID());
  mkdirSync(clone);
  for (const name of ["scripts/bootstrap", "scripts/bootstrap.mjs", "bunfig.toml"]) {
    await cp(join(root, name), join(clone, name), { recursive: true });
  }
  write(clone, "package-lock.json", { packages: { "": {}, "node_modules/thing": { version: "1.0.0" } } });
  writeFileSync(
    join(clone, "say.ts"),
    `console.log(JSON.stringify(process.argv.slice(2))); process.exit(7);`,
  );
  return clone;
}

function write(clone: string, path: string, value: unknown) {
  mkdirSync(join(clone, path, ".."), { recursive: true });
  writeFileSync(join(clone, path), typeof value === "string" ? value : JSON.stringify(value));
}

/** As npm leaves it: a stub in place of the program, and the program in the package of the platform. */
function installBun(
  clone: string,
  platform = `bun-${process.platform}-${{ arm64: "aarch64", x64: "x64" }[process.arch as "x64"]}`,
) {
  write(clone, "node_modules/bun/bin/bun.exe", stub);
  mkdirSync(join(clone, "node_modules/@oven", platform, "bin"), { recursive: true });
  const program = join(clone, "node_modules/@oven", platform, "bin/bun");
  symlinkSync(process.execPath, program);
  return program;
}

function installed(clone: string) {
  write(clone, "node_modules/.package-lock.json", {
    packages: { "node_modules/thing": { version: "1.0.0" } },
  });
  return installBun(clone);
}

function start(
  clone: string,
  args: string[],
  options: { cwd?: string; env?: Record<string, string>; runtime?: string } = {},
) {
  const { cwd = clone, env = {}, runtime = "node" } = options;
  const { PATH, HOME } = process.env;
  const child = spawn(runtime, [join(clone, "scripts/bootstrap.mjs"), ...args], {
    cwd,
    env: { PATH, HOME, ...env },
  });
  const said = { out: "", err: "" };
  child.stdout.on("data", (chunk) => (said.out += chunk));
  child.stderr.on("data", (chunk) => (said.err += chunk));
  const code = new Promise<number | null>((settle) => child.once("close", settle));
  return { child, said, code };
}

describe("finding Bun", () => {
  test("uses the platform's package if npm left a stub", async () => {
    const clone = await makeClone();
    const program = installBun(clone);
    expect(findBun(clone)).toBe(program);
  });

  test("uses the installed one if it is not a stub", async () => {
    const clone = await makeClone();
    installBun(clone);
    const real = join(clone, "node_modules/bun/bin/bun.exe");
    await rm(real);
    symlinkSync(process.execPath, real);
    expect(findBun(clone)).toBe(real);
  });

  test("says what is missing, and what to do", async () => {
    const clone = await makeClone();
    write(clone, "node_modules/bun/bin/bun.exe", stub);
    expect(() => findBun(clone)).toThrow(/npm package @oven\/bun-\S+\): remove node_modules and start again/);
  });
});

describe("whether to install", () => {
  const lock = (version: string) => ({ packages: { "node_modules/thing": { version } } });

  test("says why", async () => {
    const clone = await makeClone();
    expect(whyInstall(clone)).toBe("dependencies are not installed yet");
    mkdirSync(join(clone, "node_modules"));
    expect(whyInstall(clone)).toBe("the last installation of the dependencies was not completed");
    write(clone, "node_modules/.package-lock.json", lock("0.9.0"));
    expect(whyInstall(clone)).toBe("package-lock.json has changed since the dependencies were installed");
    write(clone, "node_modules/.package-lock.json", lock("1.0.0"));
    expect(whyInstall(clone)).toBeUndefined();
  });

  test("ignores optional packages of other platforms", async () => {
    const clone = await makeClone();
    const other = { "node_modules/other": { version: "1.0.0", optional: true } };
    write(clone, "package-lock.json", { packages: { ...lock("1.0.0").packages, ...other } });
    write(clone, "node_modules/.package-lock.json", lock("1.0.0"));
    expect(whyInstall(clone)).toBeUndefined();
  });
});

describe("running", () => {
  test("keeps arguments and exit code, under Node and under Bun", async () => {
    const clone = await makeClone();
    installed(clone);
    for (const runtime of ["node", process.execPath]) {
      const { said, code } = start(clone, ["say.ts", "a b", "--flag"], { runtime });
      expect(await code).toBe(7);
      expect(said).toEqual({ out: '["a b","--flag"]\n', err: "" });
    }
  });

  test("ignores .env and bunfig.toml of the current directory, and keeps that directory", async () => {
    const clone = await makeClone();
    installed(clone);
    const cwd = join(directory, crypto.randomUUID());
    write(cwd, ".env", "FROM_DOTENV=yes\n");
    write(cwd, "bunfig.toml", 'preload = ["./evil.ts"]\n');
    write(cwd, "evil.ts", 'console.log("evil")');
    write(clone, "say.ts", "console.log(process.env.FROM_DOTENV, process.cwd())");
    const { said, code } = start(clone, ["say.ts"], { cwd });
    expect(await code).toBe(0);
    expect(said.out).toBe(`undefined ${cwd}\n`);
  });

  test("forwards signals, and exits with the code that a shell would", async () => {
    const clone = await makeClone();
    installed(clone);
    write(
      clone,
      "say.ts",
      "process.on('SIGINT', () => process.exit(130)); console.log('up'); setInterval(() => {}, 1000);",
    );
    for (const [signal, expected] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const { child, code } = start(clone, ["say.ts"]);
      await new Promise((settle) => child.stdout.once("data", settle));
      child.kill(signal);
      expect([signal, (await code) ?? 143]).toEqual([signal, expected]);
    }
  });
});

test.each([
  [["--port", "9000"], "--port 9000"],
  [["--port=9000", "--", "--no-example"], "--no-example --port 9000"],
  [["--port", "9000", "--idp-port", "9001", "--mtls"], "--port 9000 --idp-port 9001 --mtls"],
])("`npm start %p` says where npm expects its options", async (words, command) => {
  const clone = await makeClone();
  installed(clone);
  write(clone, "package.json", { scripts: { start: "node scripts/bootstrap.mjs say.ts up" } });
  const { PATH, HOME } = process.env;
  const child = Bun.spawn(["npm", "start", ...words], {
    cwd: clone,
    env: { PATH, HOME },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = await new Response(child.stderr).text();
  expect(said).toContain(`svc: npm passes on only options after --: npm start -- ${command}\n`);
});

describe("installing", () => {
  /** An npm that runs until the test says `go`, and records when it started and ended. */
  async function withFakeNpm(clone: string) {
    const bin = join(clone, "fake");
    const real = join(clone, "real-bun");
    symlinkSync(process.execPath, real);
    write(
      clone,
      "fake/npm",
      `#!/bin/sh
      echo "start $*" >> npm.log
      while [ ! -e go ]; do sleep 0.05; done
      mkdir -p node_modules/bun/bin && ln -sf "${real}" node_modules/bun/bin/bun.exe
      echo talk
      echo end >> npm.log\n`,
    );
    chmodSync(join(bin, "npm"), 0o755);
    return { PATH: `${bin}:${process.env.PATH}` };
  }

  test("of two at once, one installs and the other waits; stdout stays clean", async () => {
    const clone = await makeClone();
    const env = await withFakeNpm(clone);
    const runs = [start(clone, ["say.ts"], { env }), start(clone, ["say.ts"], { env })];
    const waiting = Promise.race(
      runs.map(
        ({ child, said }) =>
          new Promise((settle) => {
            child.stderr.on("data", () => said.err.includes("waiting for it") && settle(true));
          }),
      ),
    );
    await waiting;
    write(clone, "go", "");
    expect(await Promise.all(runs.map(({ code }) => code))).toEqual([7, 7]);
    expect(
      readFileSync(join(clone, "npm.log"), "utf8")
        .split("\n")
        .map((line) => line.split(" ")[0]),
    ).toEqual(["start", "end", ""]);
    for (const { said } of runs) expect(said.out).toBe("[]\n");
    expect(runs.map(({ said }) => said.err).join("")).toContain(
      "svc: dependencies are not installed yet: npm ci --include=dev",
    );
    expect(existsSync(join(clone, ".svc/install.lock"))).toBe(false);
  });

  describe("before it, `svc up` checks its ports", () => {
    const taken = createServer();
    let port: number;
    beforeAll(async () => {
      port = await listen(taken);
    });
    afterAll(() => taken.close());

    /** The output of a clone where nothing is installed, and where installing would fail. */
    async function output(args: string[], files: Record<string, string> = {}, env = {}): Promise<string> {
      const clone = await makeClone();
      write(clone, "fake/npm", "#!/bin/sh\nexit 3\n");
      chmodSync(join(clone, "fake/npm"), 0o755);
      for (const [name, text] of Object.entries(files)) write(clone, name, text);
      const PATH = `${join(clone, "fake")}:${process.env.PATH}`;
      const { said, code } = start(clone, ["say.ts", "up", ...args], { env: { PATH, ...env } });
      expect(await code).toBe(1);
      return said.err;
    }
    const inUse = () => `svc: Port ${port} of 127.0.0.1 is in use`;

    test.each([
      [(one: string) => ["--port", one, "--idp-port=0"], /npm start -- --port \d+ --idp-port 0\n$/],
      [(one: string) => [`--port=${one}`, "--idp-port", "0"], /npm start -- --port \d+ --idp-port 0\n$/],
      [(one: string) => ["--idp-port", one, "--mtls", "--port", "0"], /-- --mtls --port 0 --idp-port \d+\n$/],
    ])("and prints the whole command that avoids those in use: %p", async (argsOf, command) => {
      const said = await output(argsOf(String(port)));
      expect(said).toStartWith(`${inUse()}: npm start -- `);
      expect(said).toMatch(command);
      expect(said).not.toContain(` ${port}\n`);
    });

    test("and names both", async () => {
      const other = createServer();
      const second = await listen(other);
      const said = await output(["--port", String(port), "--idp-port", String(second)]);
      other.close();
      expect(said).toStartWith(`${inUse()}. Port ${second} of 127.0.0.1 is in use: npm start -- --port `);
    });

    test("but not that of a provider that it does not start", async () => {
      const args = ["--port", "0", "--idp-port", String(port)];
      const installs = "svc: cannot install the dependencies: npm ended with exit code 3\n";
      const issuer = "SVC_OIDC_ISSUER=https://id.example.com";
      expect(await output(args, { ".env": `${issuer}\n` })).toEndWith(installs);
      expect(await output(args, {}, { SVC_OIDC_ISSUER: "https://id.example.com" })).toEndWith(installs);
      expect(await output(["--port", "0", "--idp-port", "0"])).toEndWith(installs);
    });
  });

  test("a failure is reported in one line, and the lock is released", async () => {
    const clone = await makeClone();
    write(clone, "fake/npm", "#!/bin/sh\nexit 3\n");
    chmodSync(join(clone, "fake/npm"), 0o755);
    const { said, code } = start(clone, ["say.ts"], {
      env: { PATH: `${join(clone, "fake")}:${process.env.PATH}` },
    });
    expect(await code).toBe(1);
    expect(said.err).toEndWith("svc: cannot install the dependencies: npm ended with exit code 3\n");
    expect(existsSync(join(clone, ".svc/install.lock"))).toBe(false);
  });

  test("the lock of a process that was killed is taken over", async () => {
    const path = join(directory, "killed.lock");
    writeFileSync(path, "1\n");
    const said: string[] = [];
    const result = await withLock(
      path,
      (text: string) => said.push(text),
      async () => existsSync(path),
      300,
    );
    expect(result).toBe(true);
    expect(said).toHaveLength(1);
    expect(existsSync(path)).toBe(false);
  });
});
