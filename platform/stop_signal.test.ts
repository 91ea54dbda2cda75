import { expect, test } from "bun:test";
import { join } from "node:path";

const file = JSON.stringify(join(import.meta.dir, "stop_signal.ts"));

/** The output of a process that signals itself to stop, and again after this many milliseconds. */
async function stopTwice(signal: NodeJS.Signals, milliseconds: number) {
  const code = `
    import { stopSignal } from ${file};
    const stopped = stopSignal();
    process.kill(process.pid, "${signal}");
    await stopped;
    console.log("stops");
    await Bun.sleep(${milliseconds});
    process.kill(process.pid, "${signal}");
    await Bun.sleep(100);
    console.log("has finished");
  `;
  const child = Bun.spawn([process.execPath, "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  return {
    output: await new Response(child.stdout).text(),
    exitCode: await child.exited,
    killedBy: child.signalCode,
  };
}

test.each(["SIGINT", "SIGTERM"] as const)("%s and its echo let the process finish", async (signal) => {
  for (const milliseconds of [0, 50])
    expect(await stopTwice(signal, milliseconds)).toEqual({
      output: "stops\nhas finished\n",
      exitCode: 0,
      killedBy: null,
    });
});

test.each(["SIGINT", "SIGTERM"] as const)("a second %s ends it immediately", async (signal) => {
  expect(await stopTwice(signal, 1000)).toMatchObject({ output: "stops\n", killedBy: signal });
});
