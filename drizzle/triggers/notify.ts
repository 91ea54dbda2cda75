import type { Trigger } from "./index.ts";

/**
 * Tells every server process that a challenge was decided, so that a held poll is answered at once and a remembered
 * `pending` is forgotten. The payload is the hash that is stored, in hex: it opens nothing.
 */
const challengeDecided: Trigger = {
  name: "svc_challenge_decided",
  table: "challenge",
  needs: ["token_hash", "approved_at", "denied_at", "collected_at", "expires_at"],
  timing: "after",
  events: ["update", "delete"],
  function: "svc_challenge_decided",
  body: `
begin
  if tg_op = 'DELETE' or (new.approved_at, new.denied_at, new.collected_at, new.expires_at)
    is distinct from (old.approved_at, old.denied_at, old.collected_at, old.expires_at) then
    perform pg_catalog.pg_notify('svc_challenge', pg_catalog.encode(old.token_hash, 'hex'));
  end if;
  return null;
end
`,
};

/** Tells of each line of an incident's timeline, for whoever follows one: `<incident id> <event id>`. */
const eventWritten: Trigger = {
  name: "svc_event_written",
  table: "event",
  needs: ["id", "incident_id"],
  timing: "after",
  events: ["insert"],
  function: "svc_event_written",
  body: `
begin
  perform pg_catalog.pg_notify('svc_event', pg_catalog.concat_ws(' ', new.incident_id, new.id));
  return null;
end
`,
};

export const notifyTriggers: readonly Trigger[] = [challengeDecided, eventWritten];
