import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

export interface TestMail {
  to: string[];
  raw: string;
  /** By lower-case name, unfolded. */
  headers: Record<string, string>;
  user: string | undefined;
}

export interface TestMailServer {
  port: number;
  received: TestMail[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** A mail server on this machine that keeps what it is sent. */
export async function startMailServer(options: SMTPServerOptions = {}): Promise<TestMailServer> {
  const received: TestMail[] = [];
  const server = new SMTPServer({
    ...{ authOptional: true, disableReverseLookup: true, logger: false, closeTimeout: 100 },
    // Without a certificate of its own there is nothing to start TLS with.
    disabledCommands: ["STARTTLS"],
    onData(stream, session, done) {
      let raw = "";
      stream.setEncoding("utf8");
      stream.on("data", (chunk: string) => {
        raw += chunk;
      });
      stream.on("end", () => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        received.push({ to, raw, headers: headersOf(raw), user: session.user });
        done();
      });
    },
    ...options,
  });
  server.on("error", () => {}); // of a connection that ends in the middle of a word
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.server.address() as AddressInfo;
  return {
    ...{ port, received },
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function headersOf(raw: string): Record<string, string> {
  const [head = ""] = raw.split("\r\n\r\n");
  const lines = head.replace(/\r\n[ \t]+/g, " ").split("\r\n");
  return Object.fromEntries(
    lines.map((line) => [line.split(":")[0]!.toLowerCase(), line.replace(/^[^:]*: */, "")]),
  );
}
