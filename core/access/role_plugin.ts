import { eq } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { accessRole } from "../../drizzle/schema/index.ts";
import { ConfigurationError, Conflict } from "../../platform/errors.ts";
import { seal, unseal } from "../../platform/sealed.ts";
import type { Context } from "../context.ts";
import { installationId } from "../installation.ts";
import { type ActivePlugin, type CallOptions, callPlugin, type Outcome } from "../plugin/call.ts";
import type { AppContext } from "../plugin/context.ts";
import { mask } from "../plugin/mask.ts";
import type { MethodAnswer, MethodInput, MethodName, RoleFacts } from "../plugin/methods.ts";

// The plugin of an access role, and the role's secrets (such as the password of a broker account): they are sealed in the
// database and passed only to the plugin.

export type RoleRow = typeof accessRole.$inferSelect;
export type Settings = Record<string, string | number | boolean>;

/** The plugin that serves a role. @throws Conflict while it is not enabled */
export function pluginOf({ plugins }: AppContext, slug: string): ActivePlugin<"credential"> {
  const plugin = plugins.find("credential", slug);
  if (!plugin)
    throw new Conflict(
      `The plugin ${slug} is not enabled: ask an operator to add it to SVC_PLUGIN_CREDENTIAL`,
    );
  return plugin;
}

/** Calls the plugin of a role. Masks the secrets of the role and of the plugin in every text of the outcome. */
export async function callForRole<M extends MethodName<"credential">>(
  context: AppContext,
  { role, plugin }: { role: RoleRow; plugin: ActivePlugin<"credential"> },
  method: M,
  input: Omit<MethodInput<"credential", M>, "role">,
  options?: CallOptions,
): Promise<Outcome<MethodAnswer<"credential", M>>> {
  const secrets = openSecrets(context, role);
  const values = Object.values(secrets).map(String);
  const installation = installationId(context.config.keySecret);
  const facts: RoleFacts = { slug: role.slug, installation, settings: { ...role.settings, ...secrets } };
  const masking = { ...plugin, secrets: [...plugin.secrets, ...values] };
  const given = { ...input, role: facts } as unknown as MethodInput<"credential", M>;
  const outcome = await callPlugin(masking, method, given, options);
  // Problems often quote the error of a library. The only other texts are those of `issue`, which are new secrets.
  return outcome.ok && method === "check" ? maskedStrings(outcome, masking.secrets) : outcome;
}

function maskedStrings<T>(value: T, secrets: readonly string[]): T {
  return JSON.parse(JSON.stringify(value), (_, one) =>
    typeof one === "string" ? mask(one, secrets) : one,
  ) as T;
}

const sealOf = (secret: string, id: number) => ({ secret, purpose: "access role", name: String(id) });

/** Updates the row after its insert, because the seal includes the row's id. */
export async function keepSecrets(
  tx: Transaction,
  { config }: { config: Pick<Context["config"], "keySecret"> },
  id: number,
  secrets: Settings,
): Promise<void> {
  const any = Object.keys(secrets).length > 0;
  if (any && !config.keySecret)
    throw new ConfigurationError(["SVC_KEY_SECRET: required to store the secrets of access roles"]);
  const sealed = any ? seal(JSON.stringify(secrets), sealOf(config.keySecret!, id)) : null;
  await tx.update(accessRole).set({ secrets: sealed }).where(eq(accessRole.id, id));
}

/** @throws ConfigurationError */
export function openSecrets({ config }: Pick<Context, "config">, { id, slug, secrets }: RoleRow): Settings {
  if (secrets === null) return {};
  const seal = sealOf(config.keySecret ?? "", id);
  return JSON.parse(unseal(secrets, seal, `the secrets of access role ${slug}`)) as Settings;
}
