import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const watchdog = join(import.meta.dir, "watchdog.ts");

/** Does something while its watchdog has so many seconds of patience. */
const programOf = (work: string, seconds: number) => `
  import { startWatchdog } from ${JSON.stringify(watchdog)};
  const end = startWatchdog(${seconds});
  await new Promise((resolve) => setTimeout(resolve, 1200));
  ${work}`;
const watched = (work: string, seconds = 1) =>
  Bun.spawn([process.execPath, "-e", programOf(work, seconds)], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });

test("a process whose event loop turns goes on, and its watchdog does not keep it from ending", async () => {
  const child = watched('console.log("goes on");');
  expect(await new Response(child.stdout).text()).toBe("goes on\n");
  expect(await child.exited).toBe(0);
});

test("a watchdog that was ended ends nothing", async () => {
  const child = watched(`
    await end();
    const until = performance.now() + 3000;
    while (performance.now() < until);
    console.log("goes on");`);
  expect(await new Response(child.stdout).text()).toBe("goes on\n");
  expect(await child.exited).toBe(0);
});

test("a process whose event loop does not turn ends with a line, though it does not listen to SIGTERM", async () => {
  const child = watched('process.on("SIGTERM", () => {}); console.log("loops"); for (;;);');
  expect(await new Response(child.stdout).text()).toBe("loops\n");
  expect(await new Response(child.stderr).json()).toEqual({
    ...{ level: 60, time: expect.any(String) },
    msg: "the event loop did not turn for 1 s: this process ends itself",
  });
  expect([await child.exited, child.signalCode]).toEqual([1, null]);
});

test("a process that stands still because nothing reads its log ends, too", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-watchdog-"));
  const unread = 'mkfifo "$0"; sleep 60 <"$0" & "$@" 2>"$0"; echo "exit code $?"; kill $!';
  const program = programOf('require("node:fs").writeSync(2, "x".repeat(1_000_000));', 1);
  const child = Bun.spawn(["sh", "-c", unread, join(directory, "log"), process.execPath, "-e", program]);
  expect(await new Response(child.stdout).text()).toBe("exit code 1\n");
  await rm(directory, { recursive: true });
});

test("time in which the whole process was stopped does not count", async () => {
  const child = watched(
    'process.once("SIGUSR1", () => process.exit(7)); console.log("ready"); setInterval(() => {}, 100);',
    3,
  );
  const reader = child.stdout.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("ready\n");
  child.kill("SIGSTOP");
  await Bun.sleep(4000);
  child.kill("SIGCONT");
  // Two looks of the watchdog.
  await Bun.sleep(1500);
  child.kill("SIGUSR1");
  expect(await child.exited).toBe(7);
}, 20_000);
