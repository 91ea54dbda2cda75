import { afterAll, expect, test } from "bun:test";
import { appFolder, type Started, startServing } from "../../../tests/support/http/serving.ts";
import { descendants } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());

const workersOf = ({ pid }: Started) => descendants(pid).map((worker) => worker.pid);

test("a blocked event loop ends the server, and --workers replaces it; with --reload it continues", async () => {
  await using alone = await startServing(folder.path, []);
  await using several = await startServing(folder.path, ["--workers", "2"]);
  await using reloading = await startServing(folder.path, ["--reload"]);
  const [before, stepped] = [workersOf(several), workersOf(reloading)];
  for (const server of [reloading, several, alone]) void server.fetch("/freeze").catch(() => {});
  const { code, stderr } = await alone.finished;
  expect(code).toBe(1);
  expect(JSON.parse(stderr.trim().split("\n").at(-1)!)).toMatchObject({
    level: 60,
    msg: "the event loop was blocked for 20 s: this process exits",
  });
  await several.says("ended with exit code 1; starting another");
  await until("another worker", () => {
    const now = workersOf(several);
    return now.length === 2 && now.some((pid) => !before.includes(pid));
  });
  for (let asked = 0; asked < 10; asked++) expect(workersOf(several)).toContain((await several.ask()).pid);
  expect((await several.end()).code).toBe(0);
  // It was frozen before the others, and only SIGKILL ends it.
  const goesOn = workersOf(reloading);
  for (const pid of goesOn) process.kill(pid, "SIGKILL");
  expect(goesOn).toEqual(stepped);
}, 90_000);
