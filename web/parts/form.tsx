import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { Reader } from "./reader.ts";

/** A field of a form. Its value is a text; a ticked box has `on`. */
export interface Field {
  name: string;
  label: string;
  kind: "text" | "line" | "choice" | "check" | "time" | "hidden";
  value?: string;
  /** Of a choice: values and labels. */
  choices?: readonly (readonly [string, string])[];
  /** Of a line: what to suggest. */
  suggestions?: readonly string[];
  isRequired?: boolean;
  help?: string;
}

/**
 * The hidden fields of every form: nobody else can send it, and sending it twice does it once. Those of a form that may be done
 * are `sent` again.
 */
export function FormKeys({ sent }: { sent?: ReadonlyMap<string, string> }) {
  const { csrf, formKey } = useContext(Reader);
  return (
    <>
      <input type="hidden" name="csrf" value={csrf || sent?.get("csrf")} />
      <input type="hidden" name="key" value={sent?.get("key") || formKey || crypto.randomUUID()} />
    </>
  );
}

/** A form with its fields and buttons. */
export function Form({
  action,
  fields,
  sent,
  children,
}: {
  action: string;
  fields: readonly Field[];
  sent?: ReadonlyMap<string, string>;
  children: ComponentChildren;
}) {
  return (
    <form method="post" action={action} class="fields">
      <FormKeys sent={sent} />
      {fields.map((field) => (
        <Labelled key={field.name} field={field} />
      ))}
      <div class="row">{children}</div>
    </form>
  );
}

function Labelled({ field }: { field: Field }) {
  const { name, label, kind, value, help, isRequired } = field;
  const id = `field-${name}`;
  if (kind === "hidden") return <input type="hidden" name={name} value={value} />;
  if (kind === "check")
    return (
      <label class="check">
        <input type="checkbox" name={name} checked={value === "on"} /> {label}
      </label>
    );
  return (
    <p class="field">
      <label for={id}>
        {label}
        {isRequired ? "" : <span class="quiet"> (optional)</span>}
      </label>
      <Input id={id} field={field} />
      {help && (
        <small class="quiet" id={`${id}-help`}>
          {help}
        </small>
      )}
    </p>
  );
}

function Input({ id, field }: { id: string; field: Field }) {
  const { name, kind, value, choices = [], suggestions, isRequired, help } = field;
  const shared = { id, name, required: isRequired, "aria-describedby": help && `${id}-help` };
  if (kind === "text") return <textarea {...shared} dir="auto" rows={4} defaultValue={value} />;
  if (kind === "choice")
    return (
      <select {...shared}>
        {choices.map(([one, label]) => (
          <option key={one} value={one} selected={one === value}>
            {label}
          </option>
        ))}
      </select>
    );
  return (
    <>
      <input
        {...shared}
        type="text"
        dir="auto"
        value={value}
        list={suggestions && `${id}-list`}
        placeholder={kind === "time" ? "2026-11-27 14:05" : undefined}
      />
      {suggestions && (
        <datalist id={`${id}-list`}>
          {suggestions.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </>
  );
}
