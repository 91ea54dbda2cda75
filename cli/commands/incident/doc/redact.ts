import { defineCommand } from "../../../command.ts";
import { clientArgs, docArg, incidentArg, redactionArgs, versionArg } from "../../../incident/args.ts";
import { docRedactCommand } from "../../../incident/doc.ts";

export default defineCommand({
  summary: "Permanently remove a document's text, or an earlier version (admins)",
  args: {
    ...docArg,
    ...versionArg("Remove only this earlier text: a number of svc incident doc history"),
    ...redactionArgs,
    ...incidentArg,
    ...clientArgs,
  },
  examples: ['svc incident doc redact 12 --version 3 --reason "A password of db-2"'],
  notes: [
    "Without --version, it removes the text and all its versions. To keep the rest of the text, edit it first, then remove the versions that had the words. Tasks that were found in the text stay, with their words, until an edit of the text leaves out their lines. Existing backups still hold the text. If it was a secret, replace that.",
  ],
  run: (options, io) => docRedactCommand(options, io),
});
