import type { SendMailOptions } from "nodemailer";
import { Refused, Unavailable } from "../../platform/errors.ts";
import type { MailServer } from "./server.ts";

/** Concurrent connections to the server, however many mails there are. */
const connections = 4;
/** The time that a connection waits for the next mail. */
const idleMilliseconds = 5000;

export interface Mail {
  /** The only recipient. */
  to: string;
  /** The same for each attempt, so that most mail programs show a duplicate only once. */
  messageId: string;
  subject: string;
  text: string;
}

export interface PostOptions {
  server: MailServer;
  from: string;
  replyTo?: string;
  /** The timeout for connecting, for the greeting, and for each later answer. */
  milliseconds?: number;
}

/** Sends mails, each to one recipient, over a few connections that they share. */
export function createPost({ server, from, replyTo, milliseconds = 10_000 }: PostOptions) {
  const waits = {
    connectionTimeout: milliseconds,
    greetingTimeout: milliseconds,
    socketTimeout: milliseconds,
  };
  // Loaded for the first mail, because it would take a tenth of a server's start.
  const open = async () => {
    const { createTransport } = await import("nodemailer");
    return createTransport({
      ...server,
      ...waits,
      pool: true,
      maxConnections: connections,
      idleTimeout: idleMilliseconds,
      // Text is never interpreted as a file or URL.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  };
  let transport: ReturnType<typeof open> | undefined;

  /** Whether the server takes addresses beyond ASCII (RFC 6531). nodemailer would send them without asking. */
  const takesUnicode = async (signal: AbortSignal) => {
    const { default: SmtpConnection } = await import("nodemailer/lib/smtp-connection");
    const connection = new SmtpConnection({ ...server, ...waits });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    connection.on("error", reject);
    connection.on("end", () => reject(new Error("the connection was closed")));
    signal.addEventListener("abort", () => connection.close(), { once: true });
    connection.connect(() => resolve(String(connection.lastServerResponse)));
    try {
      return /^250[ -]SMTPUTF8\b/im.test(await promise);
    } finally {
      connection.close();
    }
  };

  /**
   * When `signal` aborts, a mail that waits for a connection is not sent, and one that is being sent is cut off.
   * @throws Unavailable with the server's code, never with an address; Refused if the server rejected this mail
   *   permanently, or cannot take its address
   */
  return async function post(mail: Mail, { signal, at }: { signal: AbortSignal; at: Date }): Promise<void> {
    try {
      const needsUnicode = /[^\0-\x7f].*@/su.test(mail.to);
      if (needsUnicode && !signal.aborted && !(await takesUnicode(signal)))
        throw new Refused("the mail server does not support SMTPUTF8, which this address needs");
      transport ??= open();
      await (await transport).sendMail({ ...partsOf(mail), from, replyTo, date: at, signal });
    } catch (cause) {
      if (cause instanceof Refused) throw cause;
      const Fault = isRefusal(cause) ? Refused : Unavailable;
      throw new Fault(`the mail was not sent (${codeOf(cause)})`, { cause });
    }
  };
}

function partsOf({ to, messageId, subject, text }: Mail): SendMailOptions {
  return {
    // An object, because a string would be parsed and might contain several addresses.
    to: { name: "", address: to },
    messageId,
    subject: subject.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim(),
    text,
    // RFC 3834: prevents automatic replies.
    headers: { "Auto-Submitted": "auto-generated" },
  };
}

/**
 * 5yz answers that are not about the mail, so they are not permanent: a protocol error (500 to 504), authentication
 * required (530, RFC 4954), and a full mailbox (552, which RFC 5321 says to treat as 452).
 */
const passingCodes = new Set([500, 501, 502, 503, 504, 530, 552]);

/** Whether the server rejected this recipient or text permanently. A rejected sender is a configuration error. */
function isRefusal(error: unknown): boolean {
  const { code, command, responseCode } = Object(error) as Record<string, unknown>;
  if (command !== "RCPT TO" && code !== "EMESSAGE") return false;
  return typeof responseCode === "number" && responseCode >= 500 && !passingCodes.has(responseCode);
}

/** The code of the server's answer (550), or of the connection's error (ETIMEDOUT). Their texts may contain an address. */
function codeOf(error: unknown): string {
  const { responseCode, code } = Object(error) as { responseCode?: unknown; code?: unknown };
  return String(responseCode ?? code ?? "no connection");
}
