import * as schema from "../../../drizzle/schema/index.ts";
import { clicked } from "../browser/browser.ts";
import { insertRow } from "./catalog.ts";
import type { Person } from "./people.ts";
import { accessRequestsOf } from "./permission_access.ts";
import type { Request } from "./permission_requests.ts";
import type { World } from "./permission_world.ts";
import type { Role } from "./permissions.ts";

/** Creates the records that a request needs. `as` sends it instead of everyone with that role. */
export type Prepare = (world: World, role: Role) => Promise<Request & { as?: Person }>;

const noReasons = { incident_type_ids: [], incident_priority_ids: [], term_ids: [] };

/** All fields of a unique record, by the path of its list and the name of its id. */
const resources: Readonly<Record<string, (n: number) => Record<string, unknown>>> = {
  "/documents/ document_id": (n) => ({
    name: `quokka ${n}`,
    description: "",
    resource_type: "reference",
    weblink: null,
  }),
  "/individuals/ individual_id": (n) => ({
    name: `quokka ${n}`,
    email: `quokka-${n}@example.com`,
    ...noReasons,
  }),
  "/teams/ team_id": (n) => ({
    name: `quokka ${n}`,
    description: "",
    email: `team-${n}@example.com`,
    ...noReasons,
  }),
  "/services/ service_id": (n) => ({
    name: `quokka ${n}`,
    description: "",
    plugin_slug: null,
    external_id: null,
    rotation: null,
  }),
  "/incident_types/ incident_type_id": (n) => ({
    name: `quokka ${n}`,
    description: "",
    visibility: "Open",
    commander_service_id: null,
    postmortem: false,
    templates: [],
  }),
  "/incident_priorities/ incident_priority_id": (n) => ({
    name: `quokka ${n}`,
    description: "",
    rank: 0,
    reminder_hours: 2,
    reporter_commands: false,
  }),
  "/terms/ term_id": (n) => ({ text: `quokka ${n}`, discoverable: true }),
  "/definitions/ definition_id": (n) => ({ text: `quokka ${n}`, term_ids: [] }),
  "/applications/ application_id": (n) => ({ name: `quokka ${n}`, description: "", uri: null }),
};

async function make(world: World, resource: string) {
  const [list = ""] = resource.split(" ");
  const fields = resources[resource]!(world.next());
  const { http, body } = await world.admin.call("POST", list, fields);
  if (http !== 201) throw new Error(`POST ${list}: ${http} ${JSON.stringify(body)}`);
  return { path: `${list}${body.id}`, id: body.id as number, whole: { ...fields, version: 1 } };
}

/** The five routes of each resource. */
function usual(resource: string): [string, Prepare][] {
  const [list, id] = resource.split(" ");
  const suffix = list === "/documents/" ? " of no incident" : "";
  const path = list!;
  const only = async (world: World) => ({ path: (await make(world, resource)).path });
  return [
    [`GET ${list}${suffix}`, async (world) => ({ ...(await only(world)), path, shows: "quokka" })],
    [`POST ${list}${suffix}`, async (world) => ({ path, body: resources[resource]!(world.next()) })],
    [`GET ${list}{${id}}${suffix}`, only],
    [
      `PUT ${list}{${id}}${suffix}`,
      async (world) => {
        const { path, whole } = await make(world, resource);
        return { path, body: whole };
      },
    ],
    [`DELETE ${list}{${id}}${suffix}`, only],
  ];
}

/** The fields of a person or a team that only admins may write. */
function called(resource: string): [string, Prepare][] {
  const [list, id] = resource.split(" ");
  const put =
    (change: (world: World) => object): Prepare =>
    async (world) => {
      const { path, whole } = await make(world, resource);
      return { path, body: { ...whole, ...change(world) } };
    };
  const types = ({ typeId }: World) => ({ incident_type_ids: [typeId] });
  return [
    [
      `POST ${list} to be called for some incidents`,
      async (world) => ({ path: list!, body: { ...resources[resource]!(world.next()), ...types(world) } }),
    ],
    [`PUT ${list}{${id}} to be called for some incidents`, put(types)],
    [
      `PUT ${list}{${id}} with another email`,
      put((world) => ({ email: `other-${world.next()}@example.com` })),
    ],
  ];
}

const document = "/documents/ document_id";
const content = async (world: World) => ({ path: `${(await make(world, document)).path}/content` });
async function written(world: World) {
  const { path } = await content(world);
  await world.admin.call("PUT", path, { text: "quokka", version: null });
  return { path };
}

/** The requests of the second table of docs/permissions.md, by their texts. */
export const ofNoIncident: Readonly<Record<string, Prepare>> = {
  ...Object.fromEntries(Object.keys(resources).flatMap(usual)),
  ...Object.fromEntries(["/individuals/ individual_id", "/teams/ team_id"].flatMap(called)),
  "POST /documents/ that says where its text is": async (world) => {
    const resource_id = String(world.next());
    const body = { name: "Notes", resource_type: "reference", plugin_slug: "markdown", resource_id };
    return { path: "/documents/", body };
  },
  "GET /documents/{document_id}/content of no incident": written,
  "GET /documents/{document_id}/versions/ of no incident": async (world) => ({
    path: (await written(world)).path.replace("content", "versions/"),
  }),
  "GET /documents/{document_id}/versions/{version} of no incident": async (world) => ({
    path: (await written(world)).path.replace("content", "versions/1"),
  }),
  "POST /documents/{document_id}/redact of no incident": async (world) => ({
    path: (await written(world)).path.replace("content", "redact"),
    body: { reason: "A password" },
  }),
  "PUT /documents/{document_id}/content of no incident": async (world) => ({
    ...(await content(world)),
    body: { text: "quokka", version: null },
  }),
  "GET /services/{service_id}/on_call": async (world) => ({
    path: `${(await make(world, "/services/ service_id")).path}/on_call`,
  }),
  "PUT /terms/{term_id} for which somebody is called": async (world) => {
    const { id, path, whole } = await make(world, "/terms/ term_id");
    const { db } = world.server;
    const name = `numbat ${world.next()}`;
    const individualId = await insertRow(db, schema.individual, { name, email: `${id}@example.com` });
    await db.insert(schema.individualTerm).values({ individualId, termId: id });
    return { path, body: { ...whole, text: name } };
  },
  ...accessRequestsOf,
  "GET /audit/": async () => ({ path: "/audit/" }),
  "GET /incidents/stream": async () => ({ path: "/incidents/stream" }),
  "GET /plugins/": async () => ({ path: "/plugins/" }),
  "GET /whoami": async () => ({ path: "/whoami" }),
  "DELETE /tokens/current": async (world, role) => ({
    path: "/tokens/current",
    as: await world.signIn(role),
  }),
};

const approval = `/approve/${crypto.randomUUID()}`;
/** A form as our pages send it. */
const form = (body: string) => ({
  body,
  headers: { ...clicked, "content-type": "application/x-www-form-urlencoded" },
});

/** The requests of the third table that need more than their path. */
export const ofNobody: Readonly<Record<string, Request>> = {
  "GET /noauth/v1/{operation}/{argument}": { path: "/noauth/v1/challenge_generator/alice@example.com" },
  "GET /access/ssh/{authority}/ca.pub": { path: "/access/ssh/quokka/ca.pub" },
  "GET /access/ssh/{authority}/krl": { path: "/access/ssh/quokka/krl" },
  "GET /access/x509/{authority}/ca.pem": { path: "/access/x509/quokka/ca.pem" },
  "GET /access/x509/{authority}/crl.pem": { path: "/access/x509/quokka/crl.pem" },
  "GET /access/x509/{authority}/crl/{authority_key_id}": { path: "/access/x509/quokka/crl/1" },
  "ALL /noauth/*": { path: "/noauth/v1/nothing" },
  "GET /challenge{validator}/{challengeToken}": { path: `/challenge_validator/${"a".repeat(43)}` },
  "GET /approve/{id}": { path: approval },
  "POST /approve/{id}": { path: approval, ...form("csrf=a&decision=approve") },
  "POST /approve/{id}/switch": { path: `${approval}/switch`, ...form("csrf=a") },
};
