import { expect, test } from "bun:test";
import { createLog } from "../platform/log.ts";
import { fakeTerm } from "../plugins/fake/fakes.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { Asking } from "./ask.ts";

const called: boolean[] = [];
const askingWith = (signal: AbortSignal) =>
  new Asking({
    signal,
    log: createLog("silent"),
    plugins: pluginsOf(),
    called: (_, succeeded) => void called.push(succeeded),
  });
const never = () => new Promise<never>(() => {});

test("stops asking a plugin after three timeouts in a row; any answer resets the count", async () => {
  const good = () => [];
  const bad = () => Promise.reject(new Error());
  const source = fakeTerm(
    { list: [never, never, good, never, never, bad, never, never, never] },
    { timeoutMilliseconds: 5 },
  );
  const asking = askingWith(new AbortController().signal);
  const said: string[] = [];
  for (let times = 0; times < 11; times += 1) {
    const answer = asking.ask(source.plugin, "list", {});
    said.push(
      await answer.then(
        () => "good",
        (error: Error) => error.message.replace(/^fake-term /, ""),
      ),
    );
  }
  const late = "did not answer within 0.005 s";
  const enough = "was not called again: it timed out 3 times in a row";
  expect(said).toEqual([late, late, "good", late, late, "failed: Error", late, late, late, enough, enough]);
  expect(source.calls).toHaveLength(9);
});

test("an aborted run stops waiting for a plugin", async () => {
  const stop = new AbortController();
  const asked = askingWith(stop.signal).ask(fakeTerm({ list: never }).plugin, "list", {});
  stop.abort();
  await expect(asked).rejects.toThrow("aborted");
});
