import type { Incident } from "../../core/incident/incident/incident.ts";

export function Status({ of }: { of: Incident["status"] }) {
  return <span class={`status ${of.toLowerCase()}`}>{of}</span>;
}

/** The priority's name, with bars: more of them for what comes earlier in the order of priorities. */
export function Priority({ name, bars }: { name: string; bars: number }) {
  return (
    <span class="priority">
      <span class="bars" aria-hidden="true">
        {[1, 2, 3].map((bar) => (
          <i key={bar} class={bar <= bars ? "on" : ""} />
        ))}
      </span>
      {name}
    </span>
  );
}

export function Lock({ visibility }: Pick<Incident, "visibility">) {
  return visibility === "Restricted" ? <span class="lock">restricted</span> : null;
}
