import { expect, test } from "bun:test";
import type { Context } from "../../core/context.ts";
import { createLog } from "../../platform/log.ts";
import { signedIn } from "../../tests/support/domain/actor.ts";
import { StreamClient } from "../../tests/support/http/stream.ts";
import { until } from "../../tests/support/process/until.ts";
import { Channel } from "./channel.ts";
import { Connection } from "./connection.ts";

// The order in which a channel and its followers read. Here, the test answers each read.

const actor = signedIn("root", { admin: true });

function channelWithReads() {
  let tail = 100;
  const reads: ((...ids: number[]) => void)[] = [];
  const query = {
    from: () => query,
    leftJoin: () => query,
    where: () => query,
    orderBy: () => query,
    limit: () => {
      const { promise, resolve } = Promise.withResolvers<unknown>();
      reads.push((...ids) => {
        const items = ids.length > 0 ? ids.map((id) => ({ id, at: new Date(0), data: {} })) : [null];
        tail = Math.max(tail, ...ids);
        resolve(items.map((item) => ({ visibility: "Open", tail, item })));
      });
      return promise;
    },
  };
  const db = { select: () => query } as unknown as Context["db"];
  const channel = new Channel({ db, log: createLog("silent") }, 7);
  const asked = (read: number) => until(`read ${read}`, () => reads.length > read);
  /** Answers a read, once it is asked, with the events of these ids. */
  const answer = async (read: number, ...ids: number[]) => {
    await asked(read);
    reads[read]!(...ids);
  };
  const join = (cursor: number) => {
    const connection = new Connection(actor, () => channel.remove(connection));
    channel.add(connection, cursor);
    return { connection, client: new StreamClient(new Response(connection.body), new AbortController()) };
  };
  return { channel, asked, answer, join };
}

test("a follower that goes live during a read for all gets no event twice", async () => {
  const { channel, answer, join } = channelWithReads();
  const first = join(100);
  await answer(0);
  await Bun.sleep(0);
  void channel.wake();
  first.connection.close("left");
  const { client } = join(100);
  await answer(2, 101);
  await answer(3);
  await Bun.sleep(0);
  await answer(1, 101, 102);
  expect((await client.data()).id).toBe(101);
  expect((await client.data()).id).toBe(102);
});

test("a follower goes live while hints keep coming", async () => {
  const { channel, asked, answer, join } = channelWithReads();
  join(100);
  await answer(0);
  await Bun.sleep(0);
  void channel.wake();
  const { client } = join(99);
  await answer(2, 100);
  await asked(3);
  void channel.wake();
  await answer(3);
  await answer(1, 101);
  expect((await client.data()).id).toBe(100);
  expect((await client.data()).id).toBe(101);
});
