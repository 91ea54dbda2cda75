import type { Socket } from "bun";
import { BenchError } from "../support.ts";

/** What a watcher is sent for each event. */
const mark = Buffer.from("\nevent: event\n");
const description = Buffer.from('"description":"');

/** Clients of one stream in this process, which do as little as possible with what they are sent. */
export class Watchers {
  readonly #sockets: Socket[] = [];
  /** Events that they were sent, all together. */
  received = 0;
  /** Called with the description of each event, for each watcher. */
  onEvent: ((description: string) => void) | undefined;

  get count(): number {
    return this.#sockets.length;
  }

  /** Connects more watchers to a stream, a hundred at a time. @throws BenchError when they are refused */
  async add(address: string, path: string, count: number, token: string): Promise<void> {
    for (let left = count; left > 0; left -= 100)
      await Promise.all(
        Array.from({ length: Math.min(left, 100) }, () => this.#connect(new URL(address), path, token)),
      );
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets.splice(0)) socket.terminate();
  }

  async #connect({ hostname, port }: URL, path: string, token: string): Promise<void> {
    const opened = Promise.withResolvers<void>();
    let isOpen = false;
    let text = "";
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, bytes) => {
          if (isOpen) return this.#count(bytes);
          text += bytes.toString();
          if (!"HTTP/1.1 200".startsWith(text.slice(0, 12))) opened.reject(new BenchError(text));
          // Its first block: what is written from now on is sent.
          isOpen = text.includes("retry:");
          if (isOpen) opened.resolve();
        },
        close: () => opened.reject(new BenchError("a stream ended")),
      },
    });
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${token}\r\naccept: text/event-stream\r\n\r\n`,
    );
    this.#sockets.push(socket);
    await opened.promise;
  }

  /** An event that two packets share is not counted: it is rare, and only costs the contender. */
  #count(bytes: Buffer): void {
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + mark.length)) {
      this.received += 1;
      if (!this.onEvent) continue;
      const begin = bytes.indexOf(description, at) + description.length;
      this.onEvent(bytes.toString("latin1", begin, bytes.indexOf('"', begin)));
    }
  }
}
