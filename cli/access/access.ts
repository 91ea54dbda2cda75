import type { Static } from "elysia";
import { Conflict, NotFound, TooManyRequests } from "../../platform/errors.ts";
import type { accessRoleView, issuedView, leaseView, requestView } from "../../server/access/model.ts";
import { ApiClient } from "../client/api_client.ts";
import { mayPass, request } from "../client/request.ts";
import { authorization } from "../client/token.ts";
import { UsageError } from "../errors.ts";
import { parseIncidentId } from "../incident/id.ts";
import { optionText } from "../incident/written_text.ts";
import { startProgress } from "../progress.ts";
import { printable } from "../text.ts";
import { localTime, parseSpan, units } from "../when.ts";

// The API as `svc access` uses it, in the types of its answers.

export type Role = Static<typeof accessRoleView>;
export type AccessRequest = Static<typeof requestView>;
export type Lease = Static<typeof leaseView>;
export type Issued = Static<typeof issuedView>;

/** The timeout of requests that reach a target: longer than the default timeout of plugins. */
export const targetSeconds = 45;
const pollMilliseconds = 2000;

/** A client for the access API. */
export class AccessClient extends ApiClient {
  async role(slug: string): Promise<Role> {
    if (!/^[a-z0-9-]+$/.test(slug)) throw new UsageError(`"${slug}" is not the name of an access role`);
    return this.call("GET", `/access/roles/${slug}`);
  }

  /**
   * Waits for the decision on a request.
   * @throws Conflict unless it is approved
   */
  async decided(asked: AccessRequest): Promise<AccessRequest> {
    const { io, signal } = this;
    let now = asked;
    let pause = pollMilliseconds;
    if (now.state === "Pending") {
      let shown = waitingText(now);
      const progress = await startProgress(io, shown, new Date(asked.expires_at));
      try {
        while (now.state === "Pending") {
          await io.sleep(pause, signal);
          pause = pollMilliseconds;
          now = await this.call<AccessRequest>("GET", `/access/requests/${asked.id}`).catch(
            (error: unknown) => {
              // Keep waiting while the server or its database restarts.
              const isOver = io.clock.now() >= new Date(asked.expires_at);
              if (isOver || !mayPass(error)) throw error;
              if (error instanceof TooManyRequests) pause = Math.max(pause, error.retryAfter * 1000);
              return now;
            },
          );
          const text = waitingText(now);
          if (now.state === "Pending" && text !== shown) progress.change(text);
          shown = text;
        }
      } finally {
        progress.stop();
      }
    }
    if (now.state === "Approved") return now;
    const by = now.decided_by && now.decided_by !== "system" ? ` by ${now.decided_by}` : "";
    throw new Conflict(`The request was ${now.state.toLowerCase()}${by}${now.note ? `: ${now.note}` : ""}`);
  }

  /**
   * Gets a credential for a role. Uses an approved request if there is one; otherwise it makes a request and waits for the
   * approval. For roles whose credentials are certificates, `keyFor` provides the public key to certify.
   */
  async obtain(slug: string, wanted: Wanted, keyFor?: KeyFor): Promise<Issued> {
    const role = await this.role(slug);
    const { duration, breakGlass } = wanted;
    const incident = await this.incidentName(wanted.incident);
    const public_key = await keyFor?.(role);
    const renewable = wanted.renewable && role.renewable ? true : undefined;
    const issue = (more: object) => this.issue({ role: slug, duration, renewable, public_key, ...more });
    const say = (text: string) => breakGlass && this.io.stderr.write(`svc: ${text}\n`);
    if (role.approval === "none") {
      say(`${slug} needs no approval, so --break-glass is not used`);
      return issue({ incident });
    }
    const approved = await this.list<AccessRequest>("/access/requests/", { state: "Approved" });
    const usable = approved.filter(
      (one) =>
        one.role === slug &&
        one.user === this.session.user &&
        new Date(one.expires_at) > this.io.clock.now() &&
        (incident === undefined || one.incident === incident),
    );
    let refusal: Conflict | undefined;
    for (const { id, expires_at, break_glass } of usable) {
      try {
        const issued = await issue({ request_id: id });
        const kind = break_glass ? "break-glass request" : "approved request";
        say(`using your earlier ${kind} ${id}, until ${localTime(expires_at)}: no new request is made`);
        return issued;
      } catch (error) {
        // Its incident may be closed, for example.
        if (!(error instanceof Conflict)) throw error;
        refusal ??= error;
      }
    }
    if (refusal) throw refusal;
    if (wanted.reason === undefined)
      throw new UsageError(`${slug} needs approval: give a reason with --reason, or use svc access request`);
    const asked = await this.ask(slug, { ...wanted, reason: wanted.reason });
    const { id } = await this.decided(asked);
    return issue({ request_id: id });
  }

  async issue(body: object): Promise<Issued> {
    return this.call("POST", "/access/leases/", body, { timeout: targetSeconds });
  }

  /**
   * Uses a credential that was just issued. If that fails, it revokes the credential, because the user does not have it.
   */
  async use<T>(issued: Issued, use: () => T | Promise<T>): Promise<T> {
    try {
      return await use();
    } catch (error) {
      await this.revoke(issued);
      throw error;
    }
  }

  /** Never throws. Uses a separate request, because the session's requests may have been interrupted. */
  async revoke({ id }: Lease): Promise<void> {
    const { io, session } = this;
    const { endpoint } = session;
    const url = `${endpoint.base}/access/leases/${id}`;
    const failed = await request(io, endpoint, url, {
      method: "DELETE",
      headers: authorization(session),
    }).then(
      ({ status }) => (status < 400 ? undefined : `HTTP ${status}`),
      (error: Error) => error.message,
    );
    if (failed !== undefined)
      io.stderr.write(
        `svc: the access could not be revoked (${failed}); to end it: svc access revoke ${id}\n`,
      );
  }

  /** The name of an incident, as the access API takes it. People may also give its number or its URL. */
  async incidentName(typed: string | undefined): Promise<string | undefined> {
    if (typed === undefined) return undefined;
    const ref = parseIncidentId(typed, this.session.server.base);
    if (ref === undefined)
      throw new UsageError(
        `--incident: "${printable(typed, 80)}" is not an incident, such as INC-7, its number or its URL`,
      );
    if (ref.startsWith("INC-")) return ref;
    const found = this.call<{ name: string }>("GET", `/incidents/${ref}`).catch((error: unknown) => {
      if (!(error instanceof NotFound)) throw error;
      throw new NotFound(`there is no incident ${ref} that you may see`, { cause: error });
    });
    return (await found).name;
  }

  async ask(
    role: string,
    { reason, duration, breakGlass, ...wanted }: Wanted & { reason: string },
  ): Promise<AccessRequest> {
    const incident = await this.incidentName(wanted.incident);
    const text = await optionText(this.io, reason, "reason");
    const body = { role, incident, reason: text, duration, break_glass: breakGlass };
    return this.call("POST", "/access/requests/", body);
  }
}

type Approval = Pick<Role, "approval" | "approver_groups" | "approvals_needed">;

/** Who may approve: `group security or dba`. */
export const approversText = ({ approval, approver_groups }: Approval): string =>
  approval === "group" ? printable(`group ${approver_groups.join(" or ")}`) : approval;

/** The same for a role, with the number of approvals if it is not one: `admin, 2 approvals`. */
export const approvalText = (role: Role): string =>
  role.approvals_needed > 1
    ? `${approversText(role)}, ${role.approvals_needed} approvals`
    : approversText(role);

/** `1 of 2 approvals`, or nothing for a role that needs only one. */
export const approvalsText = ({ approvals_needed, approved_by }: AccessRequest): string =>
  approvals_needed > 1 ? `${approved_by.length} of ${approvals_needed} approvals` : "";

function waitingText(asked: AccessRequest): string {
  const by = asked.approval === "group" ? ` by ${approversText(asked)}` : "";
  const count = approvalsText(asked);
  return `Waiting for approval${by}${count && `: ${count}`} (svc access approve ${asked.id})`;
}

export type KeyFor = (role: Role) => Promise<string | undefined>;

/** The access that a user asks for. */
export interface Wanted {
  incident?: string;
  reason?: string;
  /** In seconds. */
  duration?: number;
  breakGlass?: boolean;
  /** The caller renews the lease. */
  renewable?: boolean;
}

/** The options of commands that request access. */
export const wantedArgs = {
  incident: {
    type: "string",
    short: "i",
    metavar: "INCIDENT",
    description: "The incident that the access is for: INC-7, its number or its URL",
  },
  reason: {
    type: "string",
    short: "r",
    metavar: "TEXT",
    description: "The reason, for the approver; - reads stdin",
  },
  duration: {
    type: "custom",
    parse: parseDuration,
    short: "d",
    metavar: "DURATION",
    description: "How long, such as 30m, 2h or 1d (default: the role's default)",
  },
  breakGlass: { type: "boolean", description: "Get access without approval; it is reviewed afterwards" },
} as const;

/** @throws UsageError */
function parseDuration(text: string): number {
  const seconds = parseSpan(text);
  if (seconds === undefined) throw new UsageError(`"${text}" is not a duration: use 30m, 2h or 1d`);
  return seconds;
}

/** Formats a duration such as `1h30m`, which `parseDuration` accepts. */
export function durationText(seconds: number): string {
  let left = seconds;
  let text = "";
  for (const [unit, size] of units) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text || "0s";
}

/** Parses an id that a user typed. @throws UsageError */
export function parseId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`"${text}" is not the id of a request or lease`);
  return Number(text);
}
