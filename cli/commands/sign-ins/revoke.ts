import { queryText } from "../../client/api_client.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { printable, printJson } from "../../text.ts";

export default defineCommand({
  summary: "End a sign-in, or all of a user",
  args: {
    id: {
      type: "positional",
      required: false,
      metavar: "ID",
      description: "The id that svc sign-ins list shows",
    },
    user: { type: "string", metavar: "USER", description: "All sign-ins of this user" },
    ...clientArgs,
  },
  examples: [
    "svc sign-ins revoke 0f6a2c1e-58f3-4a8e-9a51-2f0b5f1f7c11",
    "svc sign-ins revoke --user dana@example.com",
  ],
  notes: [
    "The access that was obtained with it ends, too. The sign-in at the provider stays, where a browser may get a new one without a password. Only admins can end other users' sign-ins.",
    "--user keeps the certificates of your own authority. One that is ended by its ID is refused from then on.",
  ],
  async run({ id, user, json }, io) {
    if ((id === undefined) === (user === undefined)) throw new UsageError("specify the ID of one, or --user");
    if (id !== undefined && !/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id))
      throw new UsageError(`"${id}" is not the ID of a sign-in: svc sign-ins list`);
    const { ApiClient } = await import("../../client/api_client.ts");
    const answer = await ApiClient.within(io, (client) =>
      client.call<{ ended: number } | undefined>("DELETE", `/sign_ins/${id ?? queryText({ user })}`),
    );
    const ended = answer?.ended ?? 1;
    if (json) printJson(io, { ended });
    else if (user !== undefined && ended === 0)
      io.stderr.write(`No sign-ins of ${printable(user, 60)} found.\n`);
    else io.stdout.write(`Ended ${id ?? ended}\n`);
  },
});
