import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../tests/support/database/backup.ts";
import { createLog } from "./log.ts";
import { GatheredLines, standardError } from "./log_lines.ts";

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
  "a line of level %p is written immediately, along with earlier ones",
  (level) => {
    const { log, written } = gathered();
    log.info("one");
    log[level]("two");
    expect(written).toEqual([["one", "two"]]);
  },
);

test("a large batch is written immediately, and no line twice", async () => {
  const { log, written } = gathered();
  const long = "x".repeat(1000);
  for (let n = 0; n < 100; n += 1) log.info(long);
  expect(written.flat().length).toBeGreaterThan(60);
  while (written.flat().length < 100) await Bun.sleep(1);
  await Bun.sleep(20);
  expect(written.flat()).toHaveLength(100);
});

test.each([
  ["exits normally", ""],
  ["calls process.exit", "process.exit(3);"],
  ["throws", "throw new Error('unforeseen');"],
  ["is killed after its last warning", "log.fatal('three'); process.kill(process.pid, 'SIGKILL');"],
])("a process that %s has written all its lines, in order", async (_, ending) => {
  const code = `
    import { createLog } from ${JSON.stringify(join(import.meta.dir, "log.ts"))};
    const log = createLog("info");
    log.info("zero"); log.warn("one"); log.info("two"); ${ending.includes("fatal") ? "" : "log.info('three');"}
    ${ending}`;
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "logs.ts");
  await Bun.write(file, code);
  // Repeated, so that asynchronous writes would lose the race at least once.
  for (let n = 0; n < 5; n += 1) {
    const child = Bun.spawn([process.execPath, file], { stdio: ["ignore", "ignore", "pipe"] });
    const lines = (await new Response(child.stderr).text())
      .split("\n")
      .filter((line) => line.startsWith("{"));
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["zero", "one", "two", "three"]);
  }
});

test.each<[number, string]>([
  [3, "one"],
  [4, "one"],
  [6, "one\ntw"],
])("on a disk with room for %p bytes, text after %p is lost, and later lines are complete", (space, kept) => {
  let room = space;
  let text = "";
  const output = standardError((bytes) => {
    if (room === 0) throw Object.assign(new Error("full"), { code: "ENOSPC" });
    const taken = bytes.subarray(0, room);
    room -= taken.length;
    text += Buffer.from(taken).toString();
    return taken.length;
  });
  output.write("one\ntwo\n");
  output.write("three\n");
  room = 100;
  output.write("four\n");
  output.write("five\n");
  expect(text).toBe(`${kept}\nfour\nfive\n`);
});

test("a slow reader gets everything", () => {
  let text = "";
  let turn = 0;
  const output = standardError((bytes) => {
    turn += 1;
    if (turn % 2 === 1) throw Object.assign(new Error("later"), { code: "EAGAIN" });
    text += Buffer.from(bytes.subarray(0, 4)).toString();
    return Math.min(bytes.length, 4);
  });
  output.write("one\ntwo\n");
  expect(text).toBe("one\ntwo\n");
});

test("if nothing can be written for now, it retries after a pause", () => {
  const pause = spyOn(Bun, "sleepSync");
  let turn = 0;
  const output = standardError((bytes) => {
    turn += 1;
    return turn < 3 ? 0 : bytes.length;
  });
  try {
    output.write("one\n");
    expect([turn, pause.mock.calls.length]).toEqual([3, 2]);
  } finally {
    pause.mockRestore();
  }
});

test("a full disk does not change how a program ends", async () => {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "full.ts");
  const log = JSON.stringify(join(import.meta.dir, "log.ts"));
  await Bun.write(file, `import { createLog } from ${log}; createLog("info").info("one");`);
  const { exitCode } = Bun.spawnSync(["sh", "-c", 'exec "$0" "$1" 2> /dev/full', process.execPath, file]);
  expect(exitCode).toBe(0);
});
