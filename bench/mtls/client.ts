// A process that loads one server over TLS, because wrk cannot send a client certificate. Reads its task as JSON from the
// command line, and prints a result as JSON. With `idle`, it only keeps its connections open until its input ends.

import { readFileSync } from "node:fs";

export interface Task {
  port: number;
  connections: number;
  request: string;
  seconds: number;
  idle?: boolean;
  certificate?: string;
  key?: string;
}

export interface Result {
  answers: number;
  refused: number;
  milliseconds: number;
}

const task = JSON.parse(process.argv[2] ?? "{}") as Task;
const tls = {
  rejectUnauthorized: false,
  ...(task.certificate && task.key
    ? { cert: readFileSync(task.certificate, "utf8"), key: readFileSync(task.key, "utf8") }
    : {}),
};
const result: Result = { answers: 0, refused: 0, milliseconds: 0 };
let running = true;

interface State {
  /** An answer that has not arrived completely. */
  rest: string;
}

/** Opens one connection; resolves after its handshake. */
function open(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  void Bun.connect<State>({
    hostname: "127.0.0.1",
    port: task.port,
    tls,
    socket: {
      open(socket) {
        socket.data = { rest: "" };
      },
      handshake(socket) {
        resolve();
        if (!task.idle) socket.write(task.request);
      },
      data(socket, bytes) {
        const text = socket.data.rest + bytes.toString("latin1");
        const head = text.indexOf("\r\n\r\n");
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
        if (head < 0 || text.length < head + 4 + length) {
          socket.data.rest = text;
          return;
        }
        socket.data.rest = "";
        result.answers += 1;
        if (!text.startsWith("HTTP/1.1 200")) result.refused += 1;
        if (running) socket.write(task.request);
      },
      error: (_, error) => reject(error),
      connectError: (_, error) => reject(error),
    },
  }).catch(reject);
  return promise;
}

const atOnce = 50;
for (let opened = 0; opened < task.connections; opened += atOnce)
  await Promise.all(Array.from({ length: Math.min(atOnce, task.connections - opened) }, open));
if (task.idle) {
  console.log("open");
  for await (const _ of process.stdin);
  process.exit(0);
}
const from = { at: performance.now(), ...result };
await Bun.sleep(task.seconds * 1000);
running = false;
result.answers -= from.answers;
result.milliseconds = performance.now() - from.at;
console.log(JSON.stringify(result));
process.exit(0);
