/**
 * Server-sent events (WHATWG HTML, 9.2.6, "Interpreting an event stream"). A comment, such as a heartbeat, is not a message.
 */

export interface SseMessage {
  /** `message` unless the server names another. */
  event: string;
  data: string;
  /** The last id of the stream so far; empty before the first. */
  id: string;
  /** The id before it. */
  previousId: string;
}

/** Characters of one message. The longest event of an incident has about 20,000. */
const largestMessage = 1_048_576;

/** The answer is not a stream of events, or has a message that is too large. */
export class InvalidStream extends Error {
  override name = "InvalidStream";
}

/** Parses a stream, chunk by chunk. A chunk may end anywhere, also within a character or between CR and LF. */
export class SseParser {
  /** For `Last-Event-ID`. The id of a message that was cut off does not count. */
  lastEventId: string;
  /** Milliseconds to wait before reconnecting, if the server says so. */
  retry: number | undefined;

  // Skips the byte order mark, as the specification requires.
  readonly #decoder = new TextDecoder("utf-8");
  #rest: string[] = [];
  #restSize = 0;
  #endedWithCr = false;
  #event = "";
  #data: string[] = [];
  #size = 0;
  #id: string;

  constructor(lastEventId = "") {
    this.lastEventId = lastEventId;
    this.#id = lastEventId;
  }

  /** Returns the messages that this chunk completes. @throws InvalidStream */
  push(chunk: Uint8Array): SseMessage[] {
    let text = this.#decoder.decode(chunk, { stream: true });
    if (text === "") return [];
    if (this.#endedWithCr && text.startsWith("\n")) text = text.slice(1);
    this.#endedWithCr = text.endsWith("\r");
    const lines = text.split(/\r\n|\r|\n/);
    // In parts: appending to a string would copy a line that arrives byte by byte each time.
    this.#rest.push(lines.pop()!);
    this.#restSize += this.#rest.at(-1)!.length;
    if (lines.length > 0) {
      const last = this.#rest.pop()!;
      lines[0] = this.#rest.join("") + lines[0];
      this.#rest = [last];
      this.#restSize = last.length;
    }
    const messages = lines.flatMap((line) => this.#line(line) ?? []);
    if (this.#size + this.#restSize > largestMessage)
      throw new InvalidStream(`a message of more than ${largestMessage} characters`);
    return messages;
  }

  #line(line: string): SseMessage | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") {
      this.#data.push(value);
      this.#size += value.length + 1;
      if (this.#size > largestMessage)
        throw new InvalidStream(`a message of more than ${largestMessage} characters`);
    } else if (field === "id") {
      if (!value.includes("\0")) this.#id = value;
    } else if (field === "retry" && /^\d{1,9}$/.test(value)) this.retry = Number(value);
    return undefined;
  }

  #dispatch(): SseMessage | undefined {
    const { lastEventId: previousId } = this;
    const id = this.#id;
    this.lastEventId = id;
    const message = { event: this.#event || "message", data: this.#data.join("\n"), id, previousId };
    const isEmpty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    this.#size = 0;
    return isEmpty ? undefined : message;
  }
}
