import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import { within } from "../../tests/support/process/until.ts";
import { DatabaseSocket } from "./socket.ts";
import { openSql } from "./sql.ts";

// If a new version of postgres.js fails here, compare its sources with what this folder relies on: `forEachFn`, `queue`,
// `idleTimer`, `onexecute`, `state`, `describeFirst` (postgres.ts), the option `socket` (sql.ts), when it notices the end of a connection (lost.ts, socket.ts), and
// that `closed` leaves its write buffer and timer as they were. Then update the hash.
test("the sources of postgres.js are those for which the patches were written", () => {
  const folder = join(import.meta.dir, "../../node_modules/postgres/src");
  const hash = new Bun.CryptoHasher("sha256");
  for (const file of ["connection.js", "index.js", "query.js", "queue.js", "result.js"])
    hash.update(readFileSync(join(folder, file)));
  expect(hash.digest("hex")).toBe("28319038b2476a139638fa2ae3bdfe5c642dd74f6e0414f56c35ab49ec9caf11");
});

/** A message of PostgreSQL's protocol (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
function message(type: string, body: string): Buffer {
  const head = Buffer.from(`${type}0000`);
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, Buffer.from(body)]);
}
const ready = message("Z", "I");
const welcome = Buffer.concat([message("R", "\0\0\0\0"), ready]);
const done = Buffer.concat([message("C", "SELECT 0\0"), ready]);

/** Accepts connections, and answers each simple statement with no rows. @param greeting the first answer */
function fakePostgres(greeting: Uint8Array = welcome) {
  const server = Bun.listen<{ isOpen: boolean }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => {
        socket.data = { isOpen: false };
      },
      data: (socket, received) => {
        if (!socket.data.isOpen) socket.write(greeting);
        else if (received[0] === "Q".charCodeAt(0)) socket.write(done);
        socket.data.isOpen = true;
      },
    },
  });
  const url = `postgres://svc@127.0.0.1:${server.port}/svc`;
  return { url, port: server.port, [Symbol.dispose]: () => server.stop(true) };
}

const outcome = (statement: PromiseLike<unknown>) =>
  Promise.resolve(statement).then(
    () => "answered",
    (error: { code?: string }) => error.code,
  );

/** Ends the connection after a statement was buffered, and before it is written. @returns the fate of the next one */
async function afterLostBuffer(sql: postgres.Sql, socket: () => Socket): Promise<string | undefined> {
  expect(await outcome(sql.unsafe("select"))).toBe("answered");
  const lost = sql.unsafe("select").execute();
  // postgres.js gives it to the connection in a microtask.
  await Promise.resolve();
  await Promise.resolve();
  const ended = socket();
  ended.emit("close", false);
  ended.destroy();
  expect(await within("the lost statement", outcome(lost))).not.toBe("answered");
  const next = await within("the next statement", outcome(sql.unsafe("select")));
  await sql.end({ timeout: 0 });
  return next;
}

test("bare postgres.js cannot send on a connection that ended with a buffered statement", async () => {
  using server = fakePostgres();
  let socket!: Socket;
  const open = () => {
    socket = new Socket();
    return socket.connect(server.port, "127.0.0.1");
  };
  const options = { max: 1, fetch_types: false, connect_timeout: 1, ...({ socket: open } as object) };
  expect(await afterLostBuffer(postgres(server.url, options), () => socket)).toBe("CONNECT_TIMEOUT");
});

test("a connection of ours that ended with a buffered statement sends the next one", async () => {
  using server = fakePostgres();
  let socket!: Socket;
  const open = () => {
    socket = new DatabaseSocket();
    return (socket as DatabaseSocket).to({ host: "127.0.0.1", port: server.port });
  };
  const sql = openSql(server.url, { max: 1, connect_timeout: 1, ...({ socket: open } as object) });
  expect(await afterLostBuffer(sql, () => socket)).toBe("answered");
});

const passwordPlease = message("R", "\0\0\0\x03");

/** Ends the connection in the turn in which PostgreSQL asks for the password, which is written in the next turn. */
const signIn = `
  async function signIn(sql, socket) {
    const statement = sql.unsafe("select").then(() => "answered", (error) => error.message);
    while (!socket()) await new Promise(setImmediate);
    socket().on("data", () => socket().emit("error", new Error("reset")));
    socket().on("data", () => socket().emit("close", true));
    console.log(await statement);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    console.log("still running");
    process.exit();
  }
  const options = (open) => ({ max: 1, fetch_types: false, password: "secret", socket: () => socket = open() });
  let socket;`;

/** Runs in a process of its own, which an uncaught exception ends. */
async function run(code: string): Promise<string> {
  const command = [process.execPath, "-e", `${signIn}\n${code}`];
  const child = Bun.spawn(command, { cwd: import.meta.dir, stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return stdout + stderr;
}

test("bare postgres.js throws when a connection ends while it signs in", async () => {
  using server = fakePostgres(passwordPlease);
  const said = await run(`
    const { default: postgres } = await import("postgres");
    const open = () => new (require("node:net").Socket)().connect(${server.port}, "127.0.0.1");
    await signIn(postgres(${JSON.stringify(server.url)}, options(open)), () => socket);`);
  expect(said).toContain("reset");
  expect(said).toContain("TypeError: null is not an object (evaluating 'socket.write')");
});

test("a connection of ours may end while it signs in", async () => {
  using server = fakePostgres(passwordPlease);
  const said = await run(`
    const [{ openSql }, { DatabaseSocket }] = [await import("./sql.ts"), await import("./socket.ts")];
    const open = () => new DatabaseSocket().to({ host: "127.0.0.1", port: ${server.port} });
    await signIn(openSql(${JSON.stringify(server.url)}, options(open)), () => socket);`);
  expect(said).toBe("reset\nstill running\n");
});
