import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../tests/support/backup.ts";
import { createLog } from "./log.ts";
import { GatheredLines } from "./log_lines.ts";

function gathered() {
  const written: string[][] = [];
  const messages = (lines: string) =>
    lines
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).msg as string);
  const log = createLog("info", new GatheredLines({ write: (lines) => void written.push(messages(lines)) }));
  return { log, written };
}

test("lines are written together, and in order", async () => {
  const { log, written } = gathered();
  log.info("one");
  log.info("two");
  expect(written).toEqual([]);
  while (written.length === 0) await Bun.sleep(1);
  expect(written).toEqual([["one", "two"]]);
});

test.each(["warn", "error", "fatal"] as const)(
  "a line of level %p waits for nothing, nor what is before it",
  (level) => {
    const { log, written } = gathered();
    log.info("one");
    log[level]("two");
    expect(written).toEqual([["one", "two"]]);
  },
);

test("so many lines that they are large do not wait, and none is written twice", async () => {
  const { log, written } = gathered();
  const long = "x".repeat(1000);
  for (let n = 0; n < 100; n += 1) log.info(long);
  expect(written.flat().length).toBeGreaterThan(60);
  while (written.flat().length < 100) await Bun.sleep(1);
  await Bun.sleep(20);
  expect(written.flat()).toHaveLength(100);
});

test.each([
  ["ends by itself", ""],
  ["is ended", "process.exit(3);"],
  ["dies of an error", "throw new Error('unforeseen');"],
  ["is killed behind its last warning", "log.fatal('three'); process.kill(process.pid, 'SIGKILL');"],
])("a process that %s has written all of it, in order", async (_, ending) => {
  const code = `
    import { createLog } from ${JSON.stringify(join(import.meta.dir, "log.ts"))};
    const log = createLog("info");
    log.info("zero"); log.warn("one"); log.info("two"); ${ending.includes("fatal") ? "" : "log.info('three');"}
    ${ending}`;
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "logs.ts");
  await Bun.write(file, code);
  // As often as it takes for a write by a thread to lose.
  for (let n = 0; n < 5; n += 1) {
    const child = Bun.spawn([process.execPath, file], { stdio: ["ignore", "ignore", "pipe"] });
    const lines = (await new Response(child.stderr).text())
      .split("\n")
      .filter((line) => line.startsWith("{"));
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["zero", "one", "two", "three"]);
  }
});
