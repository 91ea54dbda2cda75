/** A piece of HTML that is safe to send. Only `html` creates one, so plain strings are always escaped. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = string | number | Html | Part[] | undefined | false;

/** A template whose values are escaped for text and quoted attributes, unless they are `Html`. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(strings.reduce((text, string, i) => text + render(parts[i - 1]) + string));
}

function render(part: Part): string {
  if (part === undefined || part === false) return "";
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(render).join("");
  return Bun.escapeHTML(String(part));
}
