// The Distinguished Encoding Rules of ASN.1 (X.690), the subset that certificates use.

export const SEQUENCE = 0x30;

/** One element: its tag and content, and all of its bytes. */
export interface Element {
  tag: number;
  content: Uint8Array;
  raw: Uint8Array;
}

/** Reads all elements of a sequence's content. @throws RangeError for anything that is not DER with one-byte tags */
export function readElements(bytes: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at]!;
    const first = bytes[at + 1];
    if (first === undefined || (tag & 0x1f) === 0x1f || first === 0x80) throw new RangeError("not DER");
    const extra = first < 0x80 ? 0 : first & 0x7f;
    if (extra > 3) throw new RangeError("an element is too long");
    let length = first < 0x80 ? first : 0;
    for (const byte of bytes.subarray(at + 2, at + 2 + extra)) length = length * 256 + byte;
    const from = at + 2 + extra;
    if (from + length > bytes.length) throw new RangeError("an element is truncated");
    const raw = bytes.subarray(at, from + length);
    elements.push({ tag, content: bytes.subarray(from, from + length), raw });
    at = from + length;
  }
  return elements;
}

/** The content of the single element in `bytes`. @throws RangeError */
export function readElement(bytes: Uint8Array, tag: number): Uint8Array {
  const [only, ...more] = readElements(bytes);
  if (!only || more.length > 0 || only.tag !== tag) throw new RangeError("unexpected element");
  return only.content;
}

/** A positive INTEGER. */
export const integer = (value: number) => integerOf(value.toString(16));

/** A positive INTEGER from its hexadecimal digits, in as few bytes as DER demands. */
export function integerOf(hex: string): Buffer {
  const digits = hex.replace(/^0+(?=.)/, "");
  const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
  return derElement(0x02, bytes[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

/** Encodes one element. */
export function derElement(tag: number, content: Uint8Array): Buffer {
  const { length } = content;
  const bytes = [length >> 24, length >> 16, length >> 8, length].map((part) => part & 0xff);
  const first = bytes.findIndex((byte) => byte > 0);
  const size = length < 0x80 ? [length] : [0x80 + bytes.length - first, ...bytes.slice(first)];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}
