import { AccessClient, approvalText, type Role, targetSeconds } from "../../access/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { ExitCode } from "../../errors.ts";
import { counted, printable, printJson } from "../../text.ts";

export default defineCommand({
  summary: "Check that access roles can issue credentials, and show what to fix",
  args: {
    role: {
      type: "positional",
      metavar: "ROLE",
      required: false,
      description: "The access role (default: all)",
    },
    ...clientArgs,
  },
  examples: ["svc access check", "svc access check orders-db"],
  notes: ["For admins. The exit code is 1 if there are problems other than warnings."],
  async run({ role, json }, io) {
    type Problem = { problem: string; fix?: string; warning?: boolean };
    const checked = await AccessClient.within(io, async (client) => {
      const roles =
        role === undefined ? await client.list<Role>("/access/roles/") : [await client.role(role)];
      const answers: { role: string; approval: string; problems: Problem[] }[] = [];
      for (const one of roles) {
        const { slug, disabled } = one;
        if (disabled && role === undefined) continue;
        const path = `/access/roles/${slug}/check`;
        const { problems } = await client.call<{ problems: Problem[] }>("GET", path, undefined, {
          timeout: targetSeconds,
        });
        answers.push({ role: slug, approval: approvalText(one), problems });
      }
      return answers;
    });
    if (json) printJson(io, { items: checked });
    else
      for (const { role: slug, approval, problems } of checked) {
        const count = problems.filter(({ warning }) => !warning).length;
        io.stdout.write(
          `${slug}: ${count === 0 ? "ok" : counted(count, "problem")}; approval: ${approval}\n`,
        );
        for (const { problem, fix, warning } of problems) {
          io.stdout.write(`  ${warning ? "Warning: " : ""}${printable(problem)}\n`);
          if (fix !== undefined) io.stdout.write(`    ${printable(fix)}\n`);
        }
      }
    if (checked.some(({ problems }) => problems.some(({ warning }) => !warning))) throw new ExitCode(1);
  },
});
