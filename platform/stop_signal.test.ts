import { expect, test } from "bun:test";
import { join } from "node:path";

const file = JSON.stringify(join(import.meta.dir, "stop_signal.ts"));

/** What a process says that is told to stop by itself, and is told so again after as many milliseconds. */
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
    said: await new Response(child.stdout).text(),
    exitCode: await child.exited,
    killedBy: child.signalCode,
  };
}

test.each(["SIGINT", "SIGTERM"] as const)("%s, and its echo: it may finish", async (signal) => {
  for (const milliseconds of [0, 50])
    expect(await stopTwice(signal, milliseconds)).toEqual({
      ...{ said: "stops\nhas finished\n", exitCode: 0, killedBy: null },
    });
});

test.each(["SIGINT", "SIGTERM"] as const)("%s a second time ends it at once", async (signal) => {
  expect(await stopTwice(signal, 1000)).toMatchObject({ said: "stops\n", killedBy: signal });
});
