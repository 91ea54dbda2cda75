import type { AddressInfo, Socket } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

export interface TestMail {
  to: string[];
  raw: string;
  /** The unfolded headers by lower-case name. */
  headers: Record<string, string>;
  user: string | undefined;
}

export interface TestMailServer {
  port: number;
  received: TestMail[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** The outcome of a completely sent mail: accepted, rejected with this error, or no answer. */
type Reception = "taken" | "cut" | (Error & { responseCode: number });

/** A local mail server that stores accepted mails. */
export async function startMailServer(
  options: SMTPServerOptions = {},
  receive: (mail: TestMail) => Reception | Promise<Reception> = () => "taken",
): Promise<TestMailServer> {
  const received: TestMail[] = [];
  const sockets = new Map<number | undefined, Socket>();
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 100,
    // Without a certificate, STARTTLS is not possible.
    disabledCommands: ["STARTTLS"],
    onData(stream, session, done) {
      let raw = "";
      stream.setEncoding("utf8");
      stream.on("data", (chunk: string) => {
        raw += chunk;
      });
      stream.on("end", async () => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        const mail = { to, raw, headers: headersOf(raw), user: session.user };
        const reception = await receive(mail);
        if (reception === "cut") return void sockets.get(session.remotePort)?.destroy();
        if (reception !== "taken") return done(reception);
        received.push(mail);
        done();
      });
    },
    ...options,
  });
  server.on("error", () => {}); // such as a connection that ends early
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.server.on("connection", (socket) => void sockets.set(socket.remotePort, socket));
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    received,
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

/** The decoded text of a header (RFC 2047). */
export function wordsOf(header: string | undefined): string {
  const words = (header ?? "").replace(/\?=\s+=\?/g, "?==?");
  return words.replace(/=\?utf-8\?([BQ])\?(.*?)\?=/gi, (_, encoding, text) =>
    encoding.toUpperCase() === "B"
      ? Buffer.from(text, "base64").toString()
      : unquoted(text.replaceAll("_", " ")),
  );
}

/** The text of a mail with one part. */
export function textOf({ raw, headers }: TestMail): string {
  const body = raw.slice(raw.indexOf("\r\n\r\n") + 4);
  const encoding = headers["content-transfer-encoding"];
  if (encoding === "base64") return Buffer.from(body, "base64").toString();
  const text = encoding === "quoted-printable" ? unquoted(body.replace(/=\r\n/g, "")) : body;
  return text.replaceAll("\r\n", "\n").trimEnd();
}

function unquoted(text: string): string {
  const bytes = text.replace(/=([0-9A-F]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString();
}
