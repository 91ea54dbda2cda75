import type { Person } from "./people.ts";

/** The fields of one block of a stream. */
export interface Block {
  id?: string;
  event?: string;
  data?: string;
  retry?: string;
  /** A comment. */
  ""?: string;
}

/** A client of a stream that reads only when a test asks it to. */
export class StreamClient {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(
    readonly response: Response,
    private readonly controller: AbortController,
  ) {
    this.#reader = response.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  }

  static async open(
    person: Person,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<StreamClient> {
    const controller = new AbortController();
    const response = await person.open(path, headers, controller.signal);
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return new StreamClient(response, controller);
  }

  /** The next block, even without data; undefined at the end of the stream. */
  async next(): Promise<Block | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const lines = this.#text.slice(0, end).split("\n");
        this.#text = this.#text.slice(end + 2);
        return Object.fromEntries(lines.map((line) => /^([^:]*): ?(.*)$/s.exec(line)!.slice(1)));
      }
      const { value, done } = await this.#reader.read();
      if (done) return undefined;
      this.#text += this.#decoder.decode(value, { stream: true });
    }
  }

  /** The data of the next block with data; undefined at the end of the stream. */
  // biome-ignore lint/suspicious/noExplicitAny: tests compare it with the expected value
  async data(): Promise<any> {
    for (;;) {
      const block = await this.next();
      if (block === undefined) return undefined;
      if (block.data !== undefined) return JSON.parse(block.data);
    }
  }

  /** Reads to the end. @returns the blocks */
  async rest(): Promise<Block[]> {
    const blocks: Block[] = [];
    for (let block = await this.next(); block; block = await this.next()) blocks.push(block);
    return blocks;
  }

  /** Disconnects without notice. */
  leave(): void {
    this.controller.abort();
  }
}
