import { type Element, readElement, readElements, SEQUENCE } from "./der.ts";

// Name constraints (RFC 5280, 4.2.1.10). Unknown forms are refused, as the RFC demands.

/** The names that a certificate claims. */
export interface ClaimedNames {
  emails: readonly string[];
  /** E-mail addresses elsewhere in the subject. */
  claimedEmails: readonly string[];
  uris: readonly string[];
  hosts: readonly string[];
  hasAddresses: boolean;
  /** The encoded subject. */
  subject: Uint8Array;
}

const [EMAIL, HOST, DIRECTORY, URI, ADDRESS] = [0x81, 0x82, 0xa4, 0x86, 0x87];

/** Whether an authority with this extension value may vouch for these names. @throws RangeError if it is malformed */
export function permitsNames(extension: Uint8Array, names: ClaimedNames): boolean {
  const parts = readElements(readElement(extension, SEQUENCE));
  const subtrees = (tag: number): Element[] =>
    parts
      .filter((part) => part.tag === tag)
      .flatMap(({ content }) => readElements(content))
      .flatMap(({ content }) => {
        // A base, and two fields that RFC 5280 forbids to use.
        const [base, ...more] = readElements(content);
        if (!base || more.length > 0) throw new RangeError("a subtree has unknown fields");
        return base;
      });
  const [permitted, excluded] = [subtrees(0xa0), subtrees(0xa1)];
  const known = [EMAIL, HOST, DIRECTORY, URI, ADDRESS];
  if ([...permitted, ...excluded].some(({ tag }) => !known.includes(tag))) return false;
  if (excluded.some(({ tag }) => tag === DIRECTORY)) return false;
  if (names.hasAddresses && [...permitted, ...excluded].some(({ tag }) => tag === ADDRESS)) return false;
  const inside = (
    tag: number,
    values: readonly string[],
    matches: (value: string, base: string) => boolean,
  ) => {
    const bases = (list: Element[]) =>
      list.filter((one) => one.tag === tag).map(({ content }) => Buffer.from(content).toString("latin1"));
    const [only, never] = [bases(permitted), bases(excluded)];
    return values.every(
      (value) =>
        !never.some((base) => matches(value, base)) &&
        (only.length === 0 || only.some((base) => matches(value, base))),
    );
  };
  const directories = permitted.filter(({ tag }) => tag === DIRECTORY);
  return (
    inside(EMAIL, [...names.emails, ...names.claimedEmails], matchesEmail) &&
    inside(URI, names.uris, (uri, base) => matchesHost(hostOf(uri), base, true)) &&
    inside(HOST, names.hosts, (host, base) => matchesHost(host, base, false)) &&
    (directories.length === 0 || directories.some(({ content }) => isBelow(names.subject, content)))
  );
}

/** A base is a mailbox, a host, or with a leading dot the hosts below it. */
function matchesEmail(email: string, base: string): boolean {
  if (base === "") return true;
  if (base.includes("@")) return email.toLowerCase() === base.toLowerCase();
  return matchesHost(email.slice(email.lastIndexOf("@") + 1), base, true);
}

function matchesHost(host: string, base: string, dotMeansBelow: boolean): boolean {
  const [name, of] = [host.toLowerCase(), base.toLowerCase()];
  if (of === "" || of === ".") return true;
  if (of.startsWith(".")) return name.endsWith(of);
  return name === of || (!dotMeansBelow && name.endsWith(`.${of}`));
}

/** The host of a URI of any scheme. A URI without one is outside every subtree. */
function hostOf(uri: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:@]*)/i.exec(uri)?.[1] || "\0";
}

/** Whether the relative names of `base` are the first ones of `subject`, in the same encoding. */
function isBelow(subject: Uint8Array, base: Uint8Array): boolean {
  const names = readElements(readElement(subject, SEQUENCE));
  const wanted = readElements(readElement(base, SEQUENCE));
  return wanted.every(({ content }, at) => {
    const own = names[at]?.content;
    return own !== undefined && Buffer.from(own).equals(Buffer.from(content));
  });
}
