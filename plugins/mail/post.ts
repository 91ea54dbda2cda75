import { createTransport, type SendMailOptions } from "nodemailer";
import { Refused, Unavailable } from "../../platform/errors.ts";
import type { MailServer } from "./server.ts";

/** To the server at once, however many mails there are. */
const connections = 4;
/** A connection waits so long for the next mail. */
const idleMilliseconds = 5000;

export interface Mail {
  /** Who alone gets it. */
  to: string;
  /** The same for each attempt: by it most mail programs show one that comes twice once. */
  messageId: string;
  subject: string;
  text: string;
}

export interface PostOptions {
  server: MailServer;
  from: string;
  replyTo?: string;
  /** Of connecting, the greeting, and each silence after it. */
  milliseconds?: number;
}

/** Sends mails, each to one recipient, over a few connections that they share. */
export function createPost({ server, from, replyTo, milliseconds = 10_000 }: PostOptions) {
  const waits = {
    connectionTimeout: milliseconds,
    greetingTimeout: milliseconds,
    socketTimeout: milliseconds,
  };
  const transport = createTransport({
    ...{ ...server, ...waits, pool: true, maxConnections: connections, idleTimeout: idleMilliseconds },
    // A text is a text, whatever it looks like.
    ...{ disableFileAccess: true, disableUrlAccess: true },
  });

  /**
   * Once `signal` aborts, a mail that waits for a connection is not sent any more, and one that is being sent is cut off.
   * @throws Unavailable with the server's code, never with an address; Refused when it has refused this mail for good
   */
  return async function post(mail: Mail, { signal, at }: { signal: AbortSignal; at: Date }): Promise<void> {
    try {
      await transport.sendMail({ ...partsOf(mail), from, replyTo, date: at, signal });
    } catch (cause) {
      const Fault = isRefusal(cause) ? Refused : Unavailable;
      throw new Fault(`the mail was not sent (${codeOf(cause)})`, { cause });
    }
  };
}

function partsOf({ to, messageId, subject, text }: Mail): SendMailOptions {
  return {
    // An object: a text would be parsed, and might be several addresses.
    to: { name: "", address: to },
    messageId,
    subject: subject.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim(),
    text,
    // RFC 3834: so that no absence note answers.
    headers: { "Auto-Submitted": "auto-generated" },
  };
}

/**
 * Answers of the fives that are not about the mail, and so not for good: that the server does not speak like that (500 to
 * 504), that somebody must sign in (530, RFC 4954), and that a mailbox is full (552, which RFC 5321 wants to be read as
 * 452).
 */
const passingCodes = new Set([500, 501, 502, 503, 504, 530, 552]);

/** Whether the server has refused this recipient or text for good. To refuse the sender is a fault of the setup. */
function isRefusal(error: unknown): boolean {
  const { code, command, responseCode } = Object(error) as Record<string, unknown>;
  if (command !== "RCPT TO" && code !== "EMESSAGE") return false;
  return typeof responseCode === "number" && responseCode >= 500 && !passingCodes.has(responseCode);
}

/** The server's answer (550), or what happened to the connection (ETIMEDOUT); its words may hold an address. */
function codeOf(error: unknown): string {
  const { responseCode, code } = Object(error) as { responseCode?: unknown; code?: unknown };
  return String(responseCode ?? code ?? "no connection");
}
