import { createTransport, type SendMailOptions } from "nodemailer";
import { Refused, Unavailable } from "../../core/errors.ts";
import type { MailServer } from "./server.ts";

const connections = 4;
/** How many messages are remembered as sent. */
const remembered = 20_000;

export interface Mail {
  /** Who alone gets it. */
  to: string;
  /** The same for each attempt: one that was sent is not sent again. */
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

/**
 * Sends mails, each to one recipient and each once: what the server has taken is remembered, so a second attempt is for
 * the others. After a restart nothing is remembered any more; then the Message-ID is what tells a mail that comes twice.
 */
export function createPost({ server, from, replyTo, milliseconds = 10_000 }: PostOptions) {
  /** By Message-ID, being sent or sent; the oldest first. */
  const sent = new Map<string, Promise<unknown>>();

  /** @throws Unavailable with counts and the server's codes, never with an address; Refused when only such are left */
  return async function post(mails: readonly Mail[], { signal, at }: { signal: AbortSignal; at: Date }) {
    const waits = {
      connectionTimeout: milliseconds,
      greetingTimeout: milliseconds,
      socketTimeout: milliseconds,
    };
    const transport = createTransport({
      ...{ ...server, ...waits, pool: true, maxConnections: connections },
      // A text is a text, whatever it looks like.
      ...{ disableFileAccess: true, disableUrlAccess: true },
    });
    const stop = () => transport.close();
    signal.addEventListener("abort", stop, { once: true });
    const sendOne = (mail: Mail): Promise<unknown> => {
      const before = sent.get(mail.messageId);
      if (before) return before;
      const sending = transport.sendMail({ ...partsOf(mail), from, replyTo, date: at }).catch((error) => {
        sent.delete(mail.messageId);
        throw error;
      });
      sent.set(mail.messageId, sending);
      if (sent.size > remembered) sent.delete(sent.keys().next().value ?? "");
      return sending;
    };
    try {
      const results = await Promise.allSettled(mails.map(sendOne));
      const faults = results.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      if (faults.length === 0) return;
      const codes = [...new Set(faults.map(codeOf))].sort().join(", ");
      // As long as one of them may still be taken, it is tried again, and the others with it.
      const Fault = faults.every(isRefusal) ? Refused : Unavailable;
      throw new Fault(`${faults.length} of ${mails.length} mails were not sent (${codes})`, {
        cause: faults[0],
      });
    } finally {
      signal.removeEventListener("abort", stop);
      transport.close();
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
