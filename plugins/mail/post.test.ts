import { expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { Refused } from "../../platform/errors.ts";
import { listen } from "../../tests/support/listen.ts";
import { until } from "../../tests/support/process/until.ts";
import { startMailServer } from "../../tests/support/smtp.ts";
import { createPost } from "./post.ts";
import { mailServerOf } from "./server.ts";

const at = new Date("2026-11-20T12:00:00.000Z");
const never = new AbortController().signal;
const mail = (subject: string) => ({ to: "a@x.y", messageId: `<${subject}@x.y>`, subject, text: "t" });

const postTo = (port: number, milliseconds?: number) =>
  createPost({ server: mailServerOf(`smtp://127.0.0.1:${port}`), from: "svc@example.com", milliseconds });

test("concurrent mails share a few connections", async () => {
  const sockets = { open: 0, most: 0, all: 0 };
  await using server = await startMailServer({
    onConnect: (_session, done) => {
      sockets.all += 1;
      sockets.open += 1;
      sockets.most = Math.max(sockets.most, sockets.open);
      done();
    },
    onClose: () => {
      sockets.open -= 1;
    },
  });
  const post = postTo(server.port);
  await Promise.all(Array.from({ length: 60 }, (_, i) => post(mail(`${i}`), { signal: never, at })));
  expect(server.received).toHaveLength(60);
  expect([sockets.most, sockets.all]).toEqual([4, 4]);
});

test("a mail that waits for a connection is not sent after its call was aborted", async () => {
  const held = Promise.withResolvers<void>();
  const begun: string[] = [];
  await using server = await startMailServer({}, async ({ headers }) => {
    begun.push(headers.subject!);
    await held.promise;
    return "taken" as const;
  });
  const post = postTo(server.port);
  const first = ["1", "2", "3", "4"].map((subject) => post(mail(subject), { signal: never, at }));
  await until("all connections to be taken", () => begun.length === 4);
  const stop = new AbortController();
  const late = post(mail("late"), { signal: stop.signal, at });
  stop.abort();
  await expect(late).rejects.toMatchObject({ code: "unavailable" });
  held.resolve();
  await Promise.all([...first, post(mail("next"), { signal: never, at })]);
  expect(begun.sort()).toEqual(["1", "2", "3", "4", "next"]);
});

test("a server that hangs causes a timeout, and its connections are closed", async () => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  const port = await listen(silent);
  const stop = new AbortController();
  const cut = postTo(port)(mail("cut"), { signal: stop.signal, at });
  await until("the connection", () => sockets.size === 1);
  stop.abort();
  await expect(cut).rejects.toMatchObject({ code: "unavailable" });
  const gone = postTo(port, 100_000)({ ...mail("gone"), to: "müller@x.y" }, { signal: stop.signal, at });
  await expect(gone).rejects.toMatchObject({ code: "unavailable" });
  const late = postTo(port, 100)(mail("late"), { signal: never, at });
  await expect(late).rejects.toMatchObject({ detail: "the mail was not sent (ETIMEDOUT)" });
  await until("the connections to be closed", () => sockets.size === 0);
  silent.close();
});

test.each([
  ["müller@x.y", []],
  // The domain has an ASCII form.
  ["a@bücher.example", [["a@bücher.example"]]],
])("a mail to %p goes to a server without SMTPUTF8 only if it needs none", async (to, taken) => {
  await using server = await startMailServer();
  await postTo(server.port)({ ...mail("1"), to }, { signal: never, at });
  expect(server.received.map((one) => one.to)).toEqual([[to]]);
  await using old = await startMailServer({ hideSMTPUTF8: true });
  const error = await postTo(old.port)({ ...mail("2"), to }, { signal: never, at }).catch((error) => error);
  expect(old.received.map((one) => one.to)).toEqual(taken);
  if (taken.length === 0) expect(error).toBeInstanceOf(Refused);
  const away = postTo(1)({ ...mail("3"), to }, { signal: never, at });
  await expect(away).rejects.toMatchObject({ detail: expect.stringMatching(/was not sent \(E/) });
});
