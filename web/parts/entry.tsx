import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import type { Event } from "../../core/incident/event/list.ts";
import { hasEarlierText } from "../../core/incident/event/redact.ts";
import type { Report } from "../../core/incident/report/report.ts";
import { type Folded, foldedText, isSaid } from "../../core/incident/timeline/fold.ts";
import { useName } from "./person.tsx";
import { Reader } from "./reader.ts";
import { Text } from "./text.tsx";
import { Ago, Clock } from "./time.tsx";

const kindNames: Record<string, string> = {
  note: "note",
  "report.written": "status report",
  "message.sent": "message",
};

/** A line of the timeline: what somebody said or did, or what the server did by itself. */
export function Entry({ of, report, path }: { of: Folded<Event>; report?: Report; path: string }) {
  const name = useName(of.event.actor);
  const { admin } = useContext(Reader);
  const { event, more } = of;
  const said = kindNames[event.kind];
  if (!isSaid(event) || more.length > 0) {
    return (
      <Line event={event} path={path} className="machine">
        <bdi>{more.length > 0 ? foldedText(of) : event.description}</bdi>
        {isHuman(event) && !event.description.startsWith(name) && (
          <>
            {" · "}
            <bdi>{name}</bdi>
          </>
        )}
        {admin && hasEarlierText(event) && (
          <span class="tools">
            {" "}
            <Tool event={event} path={path} action="redact" name="Redact" />
          </span>
        )}
      </Line>
    );
  }
  const removed = event.redactedAt ? "Redacted" : event.withdrawnAt ? "Withdrawn" : undefined;
  return (
    <Line
      event={event}
      path={path}
      className={event.kind === "report.written" && !removed ? "report" : undefined}
    >
      <p class="by">
        <b>
          <bdi>{name}</bdi>
        </b>{" "}
        <span class="quiet">
          {said}
          <NotedAt event={event} />
          <Edited event={event} path={path} />
        </span>
        {!removed && <Corrections event={event} path={path} />}
      </p>
      {removed ? (
        <p class="quiet">{removed}</p>
      ) : report ? (
        <ReportText of={report} />
      ) : (
        <Text of={event.description} />
      )}
    </Line>
  );
}

function Line({
  event,
  path,
  className,
  children,
}: {
  event: Event;
  path: string;
  className?: string;
  children: ComponentChildren;
}) {
  const id = `event-${event.id}`;
  return (
    <li id={id} class={className}>
      <a class="when" href={`${path}?at=${event.id}#${id}`} data-row>
        <Clock at={event.at} />
      </a>
      <div>{children}</div>
    </li>
  );
}

export function ReportText({ of }: { of: Pick<Report, "conditions" | "actions" | "needs"> }) {
  const parts = [
    ["Conditions", of.conditions],
    ["Actions", of.actions],
    ["Needs", of.needs],
  ] as const;
  return (
    <dl>
      {parts.map(
        ([name, text]) =>
          text !== "" && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <Text of={text} />
              </dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A note that is dated back also says when it was written. */
function NotedAt({ event }: { event: Event }) {
  const { noted_at: noted } = event.data;
  if (typeof noted !== "string") return null;
  return (
    <>
      , written <Clock at={new Date(noted)} />
    </>
  );
}

/** Admins may read the earlier texts. */
function Edited({ event, path }: { event: Event; path: string }) {
  const { admin } = useContext(Reader);
  if (!event.editedAt || event.withdrawnAt || event.redactedAt) return null;
  return (
    <>
      , {admin ? <a href={`${path}/entries/${event.id}`}>edited</a> : "edited"}{" "}
      <Ago at={event.editedAt} suffix=" ago" />
    </>
  );
}

/** For those who may correct it. */
function Corrections({ event, path }: { event: Event; path: string }) {
  const { user, admin } = useContext(Reader);
  if (event.actor !== user && !admin) return null;
  const of = { event, path };
  return (
    <span class="tools">
      <Tool {...of} action="amend" name="Correct" /> <Tool {...of} action="withdraw" name="Withdraw" />{" "}
      {admin && <Tool {...of} action="redact" name="Redact" />}
    </span>
  );
}

function Tool({
  event,
  path,
  action,
  name,
}: {
  event: Event;
  path: string;
  action: "amend" | "withdraw" | "redact";
  name: string;
}) {
  return (
    <a href={`${path}/${action}?entry=${event.id}`} aria-label={`${name} this entry`}>
      {name}
    </a>
  );
}

const isHuman = ({ actor }: Event) => actor !== "system" && actor !== "worker";
