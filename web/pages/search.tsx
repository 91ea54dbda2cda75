import type { Found } from "../../core/incident/search/search.ts";
import { app, documentPath, incidentPath } from "../paths.ts";

const typeNames: Record<string, string> = { report: "status report" };

/** What a search found, with the matching words marked. */
export function Search({ q, found }: { q: string; found: readonly Found[] }) {
  return (
    <>
      <h1>
        Search{q !== "" && ": "}
        <bdi>{q}</bdi>
      </h1>
      {found.length === 0 ? (
        <p class="empty">
          {q === "" ? "Type some words above." : "Nothing that you may read has these words."}
        </p>
      ) : (
        <ul class="found">
          {found.map(({ type, id, title, excerpt, incident_id }) => {
            const path = pathOf({ type, id, incident_id });
            return (
              <li key={`${type}-${id}`}>
                <p>
                  {path ? (
                    <a href={path} data-row dir="auto">
                      {title}
                    </a>
                  ) : (
                    <b dir="auto">{title}</b>
                  )}{" "}
                  <span class="quiet">{typeNames[type] ?? type.replaceAll("_", " ")}</span>
                </p>
                <p class="quiet" dir="auto">
                  <Marked text={excerpt} q={q} />
                </p>
              </li>
            );
          })}
        </ul>
      )}
      <p>
        <a href={app}>Back to the board</a>
      </p>
    </>
  );
}

function pathOf({ type, id, incident_id }: Pick<Found, "type" | "id" | "incident_id">): string | undefined {
  if (type === "document") return documentPath(id);
  const incidentId = type === "incident" ? id : incident_id;
  if (incidentId === null) return undefined;
  return type === "note" ? `${incidentPath(incidentId)}?at=${id}#event-${id}` : incidentPath(incidentId);
}

/** The words of the query in the text, also where they only begin a word of it: a search finds their other forms. */
function Marked({ text, q }: { text: string; q: string }) {
  const words = [...q.matchAll(/-?[\p{L}\p{N}]+/gu)]
    .map(([word]) => word)
    .filter((word) => !word.startsWith("-"));
  if (words.length === 0) return <>{text}</>;
  const stems = words.map((word) => RegExp.escape(word.length > 4 ? word.slice(0, -2) : word));
  const parts = text.split(new RegExp(`(?<![\\p{L}\\p{N}])((?:${stems.join("|")})[\\p{L}\\p{N}]*)`, "giu"));
  return <>{parts.map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : part))}</>;
}
