import { domainToASCII } from "node:url";
import { Type } from "@sinclair/typebox";
import { addressOf, mayBeTold, recipientsOf } from "../../core/incident/participant/addresses.ts";
import { type CallContext, defineBuiltin, type IncidentFacts, type Message } from "../../core/plugin.ts";
import { Conflict, Refused } from "../../platform/errors.ts";
import { plain } from "../../platform/markdown.ts";
import { createPost, type Mail } from "./post.ts";
import { mailServerOf } from "./server.ts";

/** `svc@example.com`, or `svc <svc@example.com>`; one line, one address. */
const address = '^([^<>@,;:"\\r\\n]+ <[^\\s<>@,;:"]+@[^\\s<>@,;:"]+>|[^\\s<>@,;:"]+@[^\\s<>@,;:"]+)$';

export default defineBuiltin({
  title: "Mail",
  slug: "mail",
  version: "1.0.0",
  type: "conversation",
  author: "svc",
  description: "Sends an incident's messages to its participants by mail (SMTP)",
  configSchema: Type.Object({
    url: Type.String({
      pattern: "^smtps?://[^\\s/]+/?$",
      secret: true,
      description: "The mail server: smtps://user:password@mail.example.com, or smtp:// with STARTTLS",
    }),
    from: Type.String({ pattern: address, description: "The sender: svc <svc@example.com>" }),
    replyTo: Type.Optional(
      Type.String({ pattern: address, description: "Where answers go, if not to the sender" }),
    ),
  }),
  create({ url, from, replyTo }, { context, clock }) {
    const post = createPost({ server: mailServerOf(url), from, replyTo });
    const domain = from.replace(/^.*@|>$/g, "");
    const send = (to: string, words: Words, { key, signal }: CallContext) =>
      post(mailOf(to, words, { key, domain }), { signal, at: clock.now() });
    return {
      // Each mail is independent, so there is nothing to create, join, archive or reopen.
      create: () => ({}),
      recipients: ({ conversation: { incident } }) => recipientsOf(context, incident.id),
      async send({ conversation: { incident }, recipient, message, ...call }) {
        if (recipient === undefined) throw new Conflict("A mail goes to one recipient");
        const to = await addressOf(context, incident.id, recipient);
        if (to === undefined)
          throw new Refused("this recipient no longer receives messages about the incident");
        // The same id as when one delivery went to everyone, so that mail programs recognise a mail from then.
        const own = `/${encodeURIComponent(recipient)}`;
        const key = call.key.endsWith(own) ? call.key.slice(0, -own.length) : call.key;
        await send(to, { incident, message }, { ...call, key });
      },
      async direct({ person, incident, message, ...call }) {
        if (incident && !(await mayBeTold(context, incident.id, person.id)))
          throw new Conflict("The incident is Restricted, and this person is not a participant");
        await send(person.email, { incident, message }, call);
      },
      // The recipients are read for each message.
      add: () => {},
      remove: () => {},
      restrict: () => {},
      archive: () => {},
      reopen: () => {},
    };
  },
});

interface Words {
  incident?: IncidentFacts;
  message: Message;
}

function mailOf(
  to: string,
  { incident, message }: Words,
  { key, domain }: { key: string; domain: string },
): Mail {
  const hash = new Bun.CryptoHasher("sha256").update(JSON.stringify([key, to])).digest("hex");
  return {
    to,
    // nodemailer encodes the other headers.
    messageId: `<${hash.slice(0, 32)}@${domainToASCII(domain) || domain}>`,
    // Subjects appear in notifications and on locked screens.
    subject: incident?.visibility === "Restricted" ? incident.name : message.subject,
    text: plain(message.text),
  };
}
