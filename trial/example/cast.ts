import type { Example, ExampleEvent, Role } from "./example.ts";
import { people } from "./texts/people.ts";

export type Told = Omit<ExampleEvent, "id" | "incidentId">;
/** Gives out ids, from 1 on for each kind of record. */
export type Next = (kind: string) => number;

export const addressOf = (key: string) => `${key}@example.com`;
export const nameOf = (key: string) => people[key] ?? key;

/** Who takes part in one incident, in which roles and when. Each change is an event, too. */
export class Cast {
  readonly participants: Example["participants"] = [];
  readonly roles: Example["roles"] = [];
  readonly #keys = new Map<number, string>();
  readonly #incidentId: number;
  readonly #personId: (key: string) => number;
  readonly #next: Next;
  readonly #tell: (told: Told) => void;

  constructor(
    incidentId: number,
    from: { personId: (key: string) => number; next: Next; tell: (told: Told) => void },
  ) {
    this.#incidentId = incidentId;
    this.#personId = from.personId;
    this.#next = from.next;
    this.#tell = from.tell;
  }

  /** Who has not left, in the order in which they came. */
  active(): string[] {
    return this.participants.filter(({ leftAt }) => leftAt === null).map(({ id }) => this.#keyOf(id));
  }

  /** Everybody who ever was in it. */
  everybody(): string[] {
    return [...new Set(this.participants.map(({ id }) => this.#keyOf(id)))];
  }

  has(key: string): boolean {
    return this.active().includes(key);
  }

  /** Who had the role at that time, the first of several. */
  inRole(role: Role, at: Date): string | undefined {
    const found = this.roles.find(
      (row) => row.role === role && row.assumedAt <= at && (row.renouncedAt === null || row.renouncedAt > at),
    );
    return found && this.#keyOf(found.participantId);
  }

  /** How often the cost has had a reason to change. */
  changes(): number {
    const ended = (rows: readonly { leftAt?: Date | null; renouncedAt?: Date | null }[]) =>
      rows.filter((row) => (row.leftAt ?? row.renouncedAt ?? null) !== null).length;
    return this.participants.length + this.roles.length + ended(this.participants) + ended(this.roles);
  }

  /** Joins, unless they are in it, and takes the roles that they do not have. */
  join(key: string, roles: readonly Role[], at: Date, actor = addressOf(key)): void {
    if (!this.has(key)) {
      const [id, individualId] = [this.#next("participant"), this.#personId(key)];
      this.participants.push({ id, incidentId: this.#incidentId, individualId, joinedAt: at, leftAt: null });
      this.#keys.set(id, key);
      const data = { participant_id: id, individual_id: individualId };
      this.#say(at, actor, "participant.joined", `${nameOf(key)} joined`, data);
    }
    for (const role of roles) this.#assume(key, role, at, actor);
  }

  /** Command goes to somebody who is in it, and who had it stays as participant. */
  handOver(to: string, at: Date): void {
    const from = this.inRole("commander", at);
    if (from === undefined || from === to) return;
    this.#renounce(from, "commander", at, addressOf(from));
    this.join(to, ["commander"], at);
    this.#assume(from, "participant", at, addressOf(from));
  }

  leave(key: string, at: Date): void {
    const participant = this.#participant(key);
    for (const { role } of this.#open(participant.id)) this.#renounce(key, role, at, addressOf(key));
    participant.leftAt = at;
    const data = { participant_id: participant.id, individual_id: participant.individualId };
    this.#say(at, addressOf(key), "participant.left", `${nameOf(key)} left`, data);
  }

  #assume(key: string, role: Role, at: Date, actor: string): void {
    const { id: participantId, individualId } = this.#participant(key);
    if (this.#open(participantId).some((row) => row.role === role)) return;
    const id = this.#next("role");
    const incidentId = this.#incidentId;
    this.roles.push({ id, participantId, incidentId, role, assumedAt: at, renouncedAt: null });
    const data = { participant_id: participantId, individual_id: individualId, role };
    this.#say(at, actor, "role.assumed", `${nameOf(key)} is ${role}`, data);
  }

  #renounce(key: string, role: Role, at: Date, actor: string): void {
    const { id, individualId } = this.#participant(key);
    const row = this.#open(id).find((one) => one.role === role);
    if (row) row.renouncedAt = at;
    const data = { participant_id: id, individual_id: individualId, role };
    this.#say(at, actor, "role.renounced", `${nameOf(key)} is no longer ${role}`, data);
  }

  #open(participantId: number) {
    return this.roles.filter((row) => row.participantId === participantId && row.renouncedAt === null);
  }

  #participant(key: string) {
    const found = this.participants.find(({ id, leftAt }) => leftAt === null && this.#keyOf(id) === key);
    if (!found) throw new RangeError(`${key} is not in this incident`);
    return found;
  }

  #keyOf(participantId: number): string {
    return this.#keys.get(participantId) ?? "";
  }

  #say(at: Date, actor: string, kind: string, description: string, data: Told["data"]): void {
    this.#tell({ at, actor, source: "core", kind, description, data });
  }
}
