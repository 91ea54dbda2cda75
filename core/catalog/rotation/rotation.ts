import { eq, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Transaction } from "../../../drizzle/client.ts";
import { individual, rotation, rotationMember } from "../../../drizzle/schema/index.ts";
import { keepTargets } from "../link.ts";

/** The plugin whose services have a rotation. */
export const rosterSlug = "roster";

export interface Rotation {
  startsAt: Date;
  shiftHours: number;
  /** Ids of individuals, in the order of their turns. A person may occur several times. */
  members: number[];
}

/** The JSON from PostgreSQL, which has no instants. */
type RotationJson = Omit<Rotation, "startsAt"> & { startsAt: string };

/** A column of a SELECT: the rotation of the service with this id. */
export function rotationColumn(serviceId: PgColumn): SQL<Rotation | null> {
  const members = sql`select ${rotationMember.individualId} from ${rotationMember}
    where ${rotationMember.serviceId} = ${serviceId} order by ${rotationMember.position}`;
  const found = sql`select json_build_object(
      'startsAt', ${rotation.startsAt},
      'shiftHours', ${rotation.shiftHours},
      'members', array(${members}))
    from ${rotation} where ${rotation.serviceId} = ${serviceId}`;
  // Nested, because drizzle would otherwise drop the columns' table names.
  return sql<Rotation | null>`${sql`(${found})`}`.mapWith((json: RotationJson) => ({
    ...json,
    startsAt: new Date(json.startsAt),
  }));
}

/**
 * Replaces the rotation of a service. Null removes it.
 * @throws InvalidInput for `rotation.members` when one of them does not exist
 */
export async function setRotation(
  tx: Transaction,
  serviceId: number,
  wanted: Rotation | null,
): Promise<void> {
  if (wanted) await keepTargets(tx, { id: individual.id }, "rotation.members", wanted.members);
  await tx.delete(rotation).where(eq(rotation.serviceId, serviceId));
  if (!wanted) return;
  const { startsAt, shiftHours, members } = wanted;
  await tx.insert(rotation).values({ serviceId, startsAt, shiftHours });
  await tx
    .insert(rotationMember)
    .values(members.map((individualId, position) => ({ serviceId, position, individualId })));
}
