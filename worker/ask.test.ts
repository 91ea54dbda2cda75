import { expect, test } from "bun:test";
import { createLog } from "../platform/log.ts";
import { fakeTerm } from "../plugins/fake/fakes.ts";
import { Asking } from "./ask.ts";

const askingWith = (signal: AbortSignal) => new Asking({ signal, log: createLog("silent") });
const never = () => new Promise<never>(() => {});

test("a plugin that does not answer three times in a row is asked no more; any answer counts anew", async () => {
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
  const enough = "was not asked any more: it did not answer 3 times in a row";
  expect(said).toEqual([late, late, "good", late, late, "failed: Error", late, late, late, enough, enough]);
  expect(source.calls).toHaveLength(9);
});

test("a run that is given up waits for nobody", async () => {
  const stop = new AbortController();
  const asked = askingWith(stop.signal).ask(fakeTerm({ list: never }).plugin, "list", {});
  stop.abort();
  await expect(asked).rejects.toThrow("aborted");
});
