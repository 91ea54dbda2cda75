import { Elysia } from "elysia";
import { retryWork } from "../../core/incident/flow/retry.ts";
import { listWork, type OpenWork } from "../../core/outbox/list.ts";
import { Alert, type Trouble } from "../pages/forms.tsx";
import { Clock } from "../parts/time.tsx";
import { adminPath } from "../paths.ts";
import type { PageContent, Site } from "../site.tsx";
import { admins, adminsSubmit, Crumb, RowForm, Table } from "./shared.tsx";

const path = `${adminPath}/work`;

/** The dead ones first. */
const mostShown = 200;

/** What `svc scheduler work` shows, and a button that retries it. */
export function workPages(site: Site) {
  async function view(trouble?: Trouble): Promise<PageContent> {
    const work = await listWork(site.deps, { limit: mostShown });
    return { title: "Deliveries and steps", here: "admin", content: <Work work={work} trouble={trouble} /> };
  }

  const retry = adminsSubmit(site, async ({ visitor }, values) => ({
    run: async ({ db, clock }) => {
      await retryWork({ db, clock, by: visitor.actor.user }, values.text("work"));
      return path;
    },
    again: async (fill) => view(fill([]).trouble),
  }));

  return new Elysia({ name: "admin work pages" })
    .get(
      "/work",
      admins(site, () => view()),
    )
    .post("/work", retry);
}

function Work({ work, trouble }: { work: readonly OpenWork[]; trouble: Trouble | undefined }) {
  const dead = work.filter((one) => one.dead).length;
  const count = work.length === mostShown ? `${mostShown} or more` : work.length;
  return (
    <>
      <Crumb />
      <div class="row head">
        <h1>Deliveries and steps</h1>
        <span class="quiet">
          {count} not done, {dead} dead
        </span>
      </div>
      <Alert trouble={trouble} />
      {work.length === 0 ? (
        <p class="empty">Everything is done.</p>
      ) : (
        <Table
          columns={[["Key"], ["State"], ["Attempts", "wide num"], ["Next try", "wide"], ["Retry", "num"]]}
        >
          {work.map(({ kind, key, state, attempts, dueAt, error, dead }) => (
            <tr key={`${kind} ${key}`}>
              <td dir="auto">
                {key} <span class="quiet">{kind}</span>
                <small class="quiet block">
                  <bdi>{error}</bdi>
                </small>
              </td>
              <td>{dead ? <span class="late">{state}</span> : state}</td>
              <td class="wide num">{attempts}</td>
              <td class="wide">{dueAt && <Clock at={dueAt} />}</td>
              <td class="num">
                {(state === "Dead" || state === "Failed") && (
                  <RowForm action={path} name="work" value={key} button="Retry" label={`Retry ${key}`} />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
