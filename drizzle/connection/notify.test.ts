import { expect, test } from "bun:test";
import { Notifier } from "./notify.ts";

/** A client that notes the hints, and fails if told to. */
function fakeClient() {
  const sent: string[][] = [];
  const client = {
    fails: false,
    unsafe: async (_: string, values: string[]) => {
      if (client.fails) throw new Error("connection lost");
      sent.push(values);
    },
  };
  return { sent, client: client as typeof client & ConstructorParameters<typeof Notifier>[0] };
}

test("the first hint is sent at once, and those that come together as one", async () => {
  const { sent, client } = fakeClient();
  const notifier = new Notifier(client);
  notifier.notify("c", 7, 99);
  notifier.notify("c", 7, 100);
  await Bun.sleep(0);
  notifier.notify("c", 9, 104);
  notifier.notify("c", 7, 103);
  notifier.notify("c", 7, 102);
  notifier.notify("d", 1, 2);
  await notifier.flush();
  expect(sent).toEqual([
    ["c", "7 100"],
    ["c", "9 104 7 103"],
    ["d", "1 2"],
  ]);
});

test("more hints than PostgreSQL accepts at once are sent as several", async () => {
  const { sent, client } = fakeClient();
  const notifier = new Notifier(client);
  const subjects = Array.from({ length: 2000 }, (_, i) => 1_000_000 + i);
  for (const subject of subjects) notifier.notify("c", subject, 9_000_000);
  await notifier.flush();
  expect(sent.length).toBeGreaterThan(1);
  for (const [, hint] of sent) expect(hint!.length).toBeLessThan(8000);
  const pairs = sent.flatMap(([, hint]) => hint!.match(/\d+ \d+/g)!);
  expect(pairs).toEqual(subjects.map((subject) => `${subject} 9000000`));
});

test("a hint that cannot be sent is dropped, and later ones are sent", async () => {
  const { sent, client } = fakeClient();
  const notifier = new Notifier(client);
  client.fails = true;
  notifier.notify("c", 1, 1);
  await notifier.flush();
  client.fails = false;
  notifier.notify("c", 2, 2);
  await notifier.flush();
  expect(sent).toEqual([["c", "2 2"]]);
});
