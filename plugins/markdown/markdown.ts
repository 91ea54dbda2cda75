import { Type } from "@sinclair/typebox";
import { longestContent } from "../../core/incident/document/content.ts";
import { defineBuiltin } from "../../core/plugin.ts";
import { NotFound } from "../../platform/errors.ts";
import { readContent, removeContent, replaceContent, startContent } from "./content.ts";
import { fillTemplate } from "./template.ts";

/** With an empty line after a list: Markdown would join a text that people append to the last item, which is often a task. */
function openEnded(text: string): string {
  const last = text.trimEnd().split("\n").at(-1) ?? "";
  return /^\s*(?:[-*+]|\d{1,9}[.)])\s/.test(last) ? `${text.trimEnd()}\n\n` : text;
}

/**
 * Stores texts under the ids of our documents (`document_content`), regardless of a document's resource id, so that no
 * document shows the text of another. Texts have no page yet, hence no link.
 */
export default defineBuiltin({
  title: "Markdown",
  slug: "markdown",
  version: "1.0.0",
  type: "document",
  author: "svc",
  description: "Stores documents as Markdown in svc's database, and finds the tasks in them",
  configSchema: Type.Object({}),
  inDatabase: true,
  create: (_config, { context }) => ({
    async create({ document, template, variables, author }) {
      const text = template === undefined ? "" : (await readContent(context, template.id))?.text;
      if (text === undefined) throw new NotFound("The template has no text here");
      const filled = openEnded(fillTemplate(text, variables, longestContent - 2));
      await startContent(context, { documentId: document.id, text: filled, author });
      return { resourceId: String(document.id) };
    },
    async get({ document }) {
      const content = await readContent(context, document.id);
      return content ? { name: document.name, version: String(content.version) } : null;
    },
    // The name is stored only in our record.
    async update({ document: { id: documentId }, text, version, author }) {
      if (text === undefined) return {};
      return { version: String(await replaceContent(context, { documentId, text, version, author })) };
    },
    async text({ document }) {
      const content = await readContent(context, document.id);
      return content ? { text: content.text, version: String(content.version) } : null;
    },
    async tasks({ document, cursor }) {
      // Loaded late, because the parser would delay the start of every server, and servers rarely parse.
      const { tasksSince } = await import("./tasks.ts");
      return tasksSince(context, document.id, cursor);
    },
    // There are no folders.
    move: ({ document }) => ({ resourceId: document.resourceId }),
    async remove({ document }) {
      await removeContent(context, document.id);
    },
  }),
});
