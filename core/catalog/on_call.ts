import { and, eq } from "drizzle-orm";
import { individual } from "../../drizzle/schema/index.ts";
import { Unavailable } from "../../platform/errors.ts";
import { canonicalUserName } from "../auth/user/name.ts";
import { mayKnow, type Reader } from "../incident/visibility/visibility.ts";
import { callPlugin } from "../plugin/call.ts";
import type { AppContext } from "../plugin/context.ts";
import { nameByAddress, personColumns } from "./person/person.ts";
import { onCall } from "./rotation/on_call.ts";
import { rosterSlug } from "./rotation/rotation.ts";
import type { Service } from "./service.ts";

/** `id` is null for somebody whom the reader knows only from the plugin. */
export interface OnCall {
  id: number | null;
  name: string;
  email: string;
}

/**
 * Returns who is on call for a service now. Null if nobody is.
 * @throws Unavailable with the reason why its plugin does not say
 */
export async function whoIsOnCall(
  context: AppContext,
  reader: Reader,
  service: Service,
  at: Date,
): Promise<OnCall | null> {
  const { pluginSlug, rotation } = service;
  if (pluginSlug === null) return null;
  if (pluginSlug !== rosterSlug) return askPlugin(context, reader, service, pluginSlug, at);
  const position = rotation ? onCall({ ...rotation, members: rotation.members.length }, at) : undefined;
  const member = position === undefined ? undefined : rotation?.members[position];
  if (member === undefined) return null;
  const [found] = await context.db.select(personColumns).from(individual).where(eq(individual.id, member));
  return found ?? null;
}

async function askPlugin(
  { db, plugins }: AppContext,
  reader: Reader,
  { id, name, externalId }: Service,
  slug: string,
  at: Date,
): Promise<OnCall | null> {
  const plugin = plugins.find("participant", slug);
  if (!plugin) throw new Unavailable(`${slug} is not enabled: SVC_PLUGIN_PARTICIPANT`);
  const facts = { id, name, ...(externalId === null ? {} : { externalId }) };
  const outcome = await callPlugin(plugin, "onCall", { service: facts, at: at.toISOString() });
  if (!outcome.ok) throw new Unavailable(outcome.detail);
  if (outcome.value === null) return null;
  const email = canonical(slug, outcome.value.email);
  const [known] = await db
    .select(personColumns)
    .from(individual)
    .where(and(eq(individual.email, email), mayKnow(reader)));
  return known ?? { id: null, name: outcome.value.name ?? nameByAddress(email), email };
}

function canonical(slug: string, email: string): string {
  try {
    return canonicalUserName(email);
  } catch (cause) {
    throw new Unavailable(`${slug} returned an address that is not a valid user`, { cause });
  }
}
