import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const watchdog = join(import.meta.dir, "watchdog.ts");

/** A program that does some work with a watchdog of this many seconds. */
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

test("a process with a running event loop continues, and the watchdog does not keep it alive", async () => {
  const child = watched('console.log("goes on");');
  expect(await new Response(child.stdout).text()).toBe("goes on\n");
  expect(await child.exited).toBe(0);
});

test("a stopped watchdog ends nothing", async () => {
  const child = watched(`
    await end();
    const until = performance.now() + 3000;
    while (performance.now() < until);
    console.log("goes on");`);
  expect(await new Response(child.stdout).text()).toBe("goes on\n");
  expect(await child.exited).toBe(0);
});

test("a process with a blocked event loop ends with a log line, even if it ignores SIGTERM", async () => {
  const child = watched('process.on("SIGTERM", () => {}); console.log("loops"); for (;;);');
  expect(await new Response(child.stdout).text()).toBe("loops\n");
  expect(await new Response(child.stderr).json()).toEqual({
    level: 60,
    time: expect.any(String),
    msg: "the event loop was blocked for 1 s: this process exits",
  });
  expect([await child.exited, child.signalCode]).toEqual([1, null]);
});

test("a process blocked because its log is not read ends too", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-watchdog-"));
  const unread = 'mkfifo "$0"; sleep 60 <"$0" & "$@" 2>"$0"; echo "exit code $?"; kill $!';
  const program = programOf('require("node:fs").writeSync(2, "x".repeat(1_000_000));', 1);
  const child = Bun.spawn(["sh", "-c", unread, join(directory, "log"), process.execPath, "-e", program]);
  expect(await new Response(child.stdout).text()).toBe("exit code 1\n");
  await rm(directory, { recursive: true });
});

test("time while the whole process is suspended does not count", async () => {
  const child = watched(
    'process.once("SIGUSR1", () => process.exit(7)); console.log("ready"); setInterval(() => {}, 100);',
    3,
  );
  const reader = child.stdout.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("ready\n");
  child.kill("SIGSTOP");
  await Bun.sleep(4000);
  child.kill("SIGCONT");
  // Two checks of the watchdog.
  await Bun.sleep(1500);
  child.kill("SIGUSR1");
  expect(await child.exited).toBe(7);
});
