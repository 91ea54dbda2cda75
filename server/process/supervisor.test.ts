import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { appFolder } from "../../tests/support/http/serving.ts";
import { descendants } from "../../tests/support/process/processes.ts";
import { until } from "../../tests/support/process/until.ts";
import { Supervisor } from "./supervisor.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());

/** Larger than any open descriptor, so that no process can be started with it. */
const noDescriptor = 2_000_000_000;

const logOf = (said: string[]) => ({
  info: (text: string) => void said.push(text),
  warn: (text: string) => void said.push(text),
});

/** A supervisor whose n-th attempt (from 1) to start a process fails if `fails` says so. */
function supervisor(name: string, count: number, fails: (attempt: number) => boolean) {
  const socket = join(folder.path, name);
  const said: string[] = [];
  let attempts = 0;
  const workers = new Supervisor({
    args: ["server", "start", `${join(folder.path, "mine")}:plain`, "--uds", socket, "--supervised"],
    count,
    graceSeconds: 5,
    startSeconds: 60,
    log: logOf(said),
    get fd() {
      attempts += 1;
      return fails(attempts) ? noDescriptor : undefined;
    },
  });
  const ours = () => descendants(process.pid).filter(({ command }) => command.includes(socket));
  const answers = () =>
    fetch("http://svc.test/", { unix: socket }).then(
      ({ status }) => status === 200,
      () => false,
    );
  return { workers, said, ours, answers };
}

test("a worker that cannot be started is retried with increasing delays", async () => {
  const { workers, said, ours, answers } = supervisor(
    "again",
    1,
    (attempt) => attempt === 2 || attempt === 3,
  );
  await workers.start();
  process.kill(ours()[0]!.pid, "SIGKILL");
  await until("an answer of the next one", answers);
  expect(said).toEqual([
    expect.stringMatching(/^worker \d+ was killed by SIGKILL; starting another in 0.1 s$/),
    "a worker could not be started (EBADF); starting another in 0.2 s",
    "a worker could not be started (EBADF); starting another in 0.4 s",
  ]);
  await workers.stop();
  expect(ours()).toEqual([]);
});

test("during a replacement, the running worker keeps serving", async () => {
  const { workers, said, ours, answers } = supervisor("rolls", 1, (attempt) => attempt === 2);
  await workers.start();
  const before = ours();
  expect(await workers.roll()).toBe(false);
  expect(said).toEqual(["the new worker did not start; the old one keeps running"]);
  expect([ours(), await answers()]).toEqual([before, true]);
  await workers.stop();
});

test.each([1, 2])(
  "if worker number %d cannot be started at startup, none is left running",
  async (number) => {
    const { workers, ours } = supervisor(`start-${number}`, 2, (attempt) => attempt === number);
    await expect(workers.start()).rejects.toThrow("A worker could not be started (EBADF)");
    expect(ours()).toEqual([]);
  },
);
