/** A SQL string literal, for scripts and for multi-statement messages, which cannot take parameters. */
export function literal(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

/** A quoted SQL identifier. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** The actual name for an identifier as written in SQL. */
export function fold(written = ""): string {
  return written.startsWith('"') ? written.slice(1, -1).replaceAll('""', '"') : written.toLowerCase();
}

const namePart = /U&"(?:[^"]|"")+"|"(?:[^"]|"")+"|[^\s".]+/giy;

/**
 * The actual parts of a name as written in SQL: `public."odd name"`, also `U&"with\\000Abreak"`. Empty for text that is
 * not a name.
 */
export function nameParts(written: string): string[] {
  const parts: string[] = [];
  namePart.lastIndex = 0;
  for (;;) {
    const [part] = namePart.exec(written) ?? [];
    if (part === undefined) return [];
    parts.push(/^U&"/i.test(part) ? unescaped(fold(part.slice(2))) : fold(part));
    const at = namePart.lastIndex;
    if (at === written.length) return parts;
    if (written[at] !== ".") return [];
    namePart.lastIndex = at + 1;
  }
}

/** Decodes the escapes of `U&"..."`. */
export function unescaped(name: string, sign = "\\"): string {
  const mark = RegExp.escape(sign);
  const pattern = new RegExp(`${mark}(?:([0-9A-Fa-f]{4})|\\+([0-9A-Fa-f]{6})|${mark})`, "g");
  return name.replace(pattern, (whole, four, six) => {
    const code = Number.parseInt(four ?? six, 16);
    if (Number.isNaN(code)) return sign;
    return code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
  });
}

/** Formats a name for a mark, a comment or a message on one line, quoted only if necessary. `nameParts` reads it. */
export function shownName(parts: readonly string[]): string {
  return parts.map(shownPart).join(".");
}

function shownPart(part: string): string {
  if (/^[a-z_][a-z0-9_]*$/.test(part)) return part;
  if (!/[\p{Cc}\p{Zl}\p{Zp}]/u.test(part)) return quoted(part);
  const escaped = part
    .replaceAll("\\", "\\\\")
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, (sign) => `\\${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `U&${quoted(escaped)}`;
}
